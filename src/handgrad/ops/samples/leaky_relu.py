"""Sample inputs of `ops.leaky_relu`."""

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

_ROWS: Final = (
    *KINKED,
    row("steep", "option", {"x": away_from_zero(3, 5)}, negative_slope=0.3),
    row("slope below zero", "option", {"x": away_from_zero(3, 5)}, negative_slope=-0.5),
    row("slope of zero", "option", {"x": away_from_zero(3, 5)}, negative_slope=0.0),
)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=awkward(),
    small=row("small", "usual", SMALL_KINKED, negative_slope=0.5),
    small_cotangent=SMALL_COTANGENT,
    random=random_of(away_from_zero, negative_slope=(0.01, 0.3, -0.5)),
    torch=lambda F, arrays, options: F.leaky_relu(arrays["x"], **options),
)
