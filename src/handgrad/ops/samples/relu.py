"""Sample inputs of `ops.relu`."""

from __future__ import annotations

from typing import Final

from handgrad.ops.samples._elementwise import (
    KINKED,
    SMALL_COTANGENT,
    SMALL_KINKED,
    awkward,
    random_of,
)
from handgrad.ops.samples._makers import away_from_zero
from handgrad.ops.samples._table import OpSamples, row

SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=KINKED,
    awkward=awkward(),
    small=row("small", "usual", SMALL_KINKED),
    small_cotangent=SMALL_COTANGENT,
    random=random_of(away_from_zero),
    torch=lambda F, arrays, options: F.relu(arrays["x"]),
)
