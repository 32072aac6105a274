"""CrossEntropy: the softmax and the negative logarithm of the right class in one."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.losses.base import Loss
from handgrad.ops import cross_entropy


class CrossEntropy(Loss):
    """`ops.cross_entropy` on class scores (N, C, …) against class numbers or probabilities."""

    op = cross_entropy

    def __init__(
        self,
        *,
        weight: Array | None = None,
        label_smoothing: float = 0.0,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            weight=weight,
            label_smoothing=label_smoothing,
            ignore_index=ignore_index,
            reduction=reduction,
        )
