"""Sample inputs of `ops.swiglu`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from handgrad.ops.samples._gated import AWKWARD, ROWS, SMALL, SMALL_COTANGENT, random_of
from handgrad.ops.samples._table import OpSamples


def _gated(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    a, b = arrays["x"].chunk(2, dim=-1)
    return F.silu(a) * b


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=ROWS,
    awkward=AWKWARD,
    small=SMALL,
    small_cotangent=SMALL_COTANGENT,
    random=random_of(),
    torch=_gated,
)
