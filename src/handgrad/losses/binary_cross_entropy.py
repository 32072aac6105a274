"""BinaryCrossEntropy: the sigmoid and the negative logarithm of the right answer in one."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.losses.base import Loss
from handgrad.ops import binary_cross_entropy


class BinaryCrossEntropy(Loss):
    """`ops.binary_cross_entropy` on logits against targets from 0 to 1 of the same shape."""

    op = binary_cross_entropy

    def __init__(
        self,
        *,
        weight: Array | None = None,
        pos_weight: Array | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, pos_weight=pos_weight, reduction=reduction)
