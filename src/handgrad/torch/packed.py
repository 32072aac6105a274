"""PackedSequences as padded batches with lengths, and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Padding(NamedTuple):
    """The positions of a packed batch's rows in the padded one, (N, T) as one axis.

    `rows` says for each row where it stands, `steps` for each step of each sequence which row it
    is, and for padding the first, because kernels never read what stands there.
    """

    lengths: Tensor
    rows: Tensor
    steps: Tensor

    @classmethod
    def of(cls, batch_sizes: Tensor) -> Padding:
        """From the number of sequences at every time, as PackedSequence has it."""
        steps = batch_sizes.shape[0]
        batch = torch.arange(int(batch_sizes[0]))
        counts = batch < batch_sizes[:, None]
        t, n = counts.nonzero(as_tuple=True)
        rows = n * steps + t
        positions = rows.new_zeros(len(batch) * steps)
        positions[rows] = torch.arange(len(rows))
        return cls(counts.sum(dim=0), rows, positions)

    def padded(self, data: Tensor) -> Tensor:
        """(rows, D) as (N, T, D)."""
        values: Tensor = _Taken.apply(data, self.steps, self.rows)
        return values.view(len(self.lengths), -1, data.shape[1])

    def packed(self, values: Tensor) -> Tensor:
        """(N, T, D) as (rows, D)."""
        taken: Tensor = _Taken.apply(values.flatten(0, 1), self.rows, self.steps)
        return taken


class _Taken(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Rows by their numbers. `back` takes each gradient to its place: nothing depends on padding,
    so what comes back from there is left behind, and no sums are needed."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, numbers: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(numbers, back)
        return values.index_select(0, numbers)

    @staticmethod
    def backward(ctx: Any, dtaken: Tensor) -> tuple[Tensor, None, None]:
        numbers, back = ctx.saved_tensors
        return _Taken.apply(dtaken, back, numbers), None, None
