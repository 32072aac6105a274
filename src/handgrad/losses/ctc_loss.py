"""CTCLoss: scores of every step against labels of which nobody says when."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.losses.base import Cache, Loss
from handgrad.ops import ctc_loss


class CTCLoss(Loss):
    """`ops.ctc_loss` on class scores (N, T, C) against labels (N, L), each with their lengths.

    The softmax is fused: y are scores; log probabilities, as PyTorch's CTCLoss takes them, do as
    well. `blank` is the class that stands for no label.
    """

    op = ctc_loss
    capturable = True

    def __init__(
        self, *, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(blank=blank, reduction=reduction, zero_infinity=zero_infinity)

    def forward(
        self,
        y: Array,
        target: Array,
        input_lengths: Array | None = None,
        target_lengths: Array | None = None,
    ) -> tuple[Array, Cache]:
        """The loss and what backward needs; without lengths all steps and labels count."""
        loss, cache = ctc_loss.forward(y, target, input_lengths, target_lengths, **self.options)
        return loss, Cache(cache, loss)
