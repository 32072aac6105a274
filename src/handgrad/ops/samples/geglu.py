"""Sample inputs of `ops.geglu`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from handgrad.ops.gelu import APPROXIMATIONS
from handgrad.ops.samples._gated import AWKWARD, ROWS, SMALL, SMALL_COTANGENT, random_of
from handgrad.ops.samples._makers import extreme, normal, uniform
from handgrad.ops.samples._table import OpSamples, row

_ROWS: Final = (
    *ROWS,
    row("tanh form", "option", {"x": normal(3, 10)}, approximate="tanh"),
    row("tanh form, wide", "option", {"x": uniform(5, 6, low=-6.0, high=6.0)}, approximate="tanh"),
    row("tanh form, extreme", "extreme values", {"x": extreme(5, 8)}, approximate="tanh"),
)


def _gated(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    a, b = arrays["x"].chunk(2, dim=-1)
    return F.gelu(a, **options) * b


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        *AWKWARD,
        row("tanh form, awkward", "option", {"x": normal(5, 246)}, approximate="tanh"),
        row(
            "tanh form, far out",
            "option",
            {"x": uniform(194, low=-30.0, high=30.0)},
            approximate="tanh",
        ),
    ),
    small=SMALL,
    small_cotangent=SMALL_COTANGENT,
    random=random_of(approximate=APPROXIMATIONS),
    torch=_gated,
)
