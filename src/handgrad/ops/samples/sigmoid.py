"""Sample inputs of `ops.sigmoid`."""

from __future__ import annotations

from typing import Final

from handgrad.ops.samples._elementwise import (
    SMALL_COTANGENT,
    SMALL_SMOOTH,
    SMOOTH,
    awkward,
    random_of,
)
from handgrad.ops.samples._makers import normal
from handgrad.ops.samples._table import OpSamples

SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=SMOOTH,
    awkward=awkward(),
    small=SMALL_SMOOTH,
    small_cotangent=SMALL_COTANGENT,
    random=random_of(normal),
    torch=lambda F, arrays, options: F.sigmoid(arrays["x"]),
)
