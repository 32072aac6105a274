"""Sample inputs of `ops.gelu`."""

from __future__ import annotations

from typing import Final

from handgrad.ops.gelu import APPROXIMATIONS
from handgrad.ops.samples._elementwise import (
    SMALL_COTANGENT,
    SMALL_SMOOTH,
    SMOOTH,
    awkward,
    random_of,
)
from handgrad.ops.samples._makers import extreme, normal, uniform
from handgrad.ops.samples._table import OpSamples, row

_ROWS: Final = (
    *SMOOTH,
    row("tanh form", "option", {"x": normal(3, 5)}, approximate="tanh"),
    row("tanh form, wide", "option", {"x": uniform(5, 7, low=-6.0, high=6.0)}, approximate="tanh"),
    row("tanh form, extreme", "extreme values", {"x": extreme(5, 7)}, approximate="tanh"),
)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=awkward(
        row("tanh form, awkward", "option", {"x": normal(5, 123)}, approximate="tanh"),
        row(
            "tanh form, far out",
            "option",
            {"x": uniform(97, low=-30.0, high=30.0)},
            approximate="tanh",
        ),
    ),
    small=SMALL_SMOOTH,
    small_cotangent=SMALL_COTANGENT,
    random=random_of(normal, approximate=APPROXIMATIONS),
    torch=lambda F, arrays, options: F.gelu(arrays["x"], **options),
)
