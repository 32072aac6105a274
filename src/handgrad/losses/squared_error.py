"""SquaredError: the distance to the target, squared."""

from __future__ import annotations

from handgrad.losses.base import Loss
from handgrad.ops import squared_error


class SquaredError(Loss):
    """`ops.squared_error`: the mean of (y − t)², or with `reduction="half_sum"` ½ Σ (y − t)²."""

    op = squared_error
    capturable = True

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
