"""Sequences of different lengths: as they are kept, and as a batch of them looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array, DType, Index
from handgrad.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from jaxtyping import Int


_multiple: Final[ContextVar[int]] = ContextVar("handgrad.padding_multiple", default=1)


@contextmanager
def padded_to(multiple: int) -> Iterator[None]:
    """Within the block, batches are as long as a multiple of `multiple`, or as the longest of all.

    Batches then have few shapes, for what is compiled once for each.
    """
    token = _multiple.set(multiple)
    try:
        yield
    finally:
        _multiple.reset(token)


class Ragged(NamedTuple):
    """A batch of sequences, each padded to the longest of the batch, or further by `padded_to`.

    x: (N, T, ...); lengths: (N,) int64, how much of each is real. N is `len(batch.lengths)`.
    """

    x: Array
    lengths: Int[Array, "N"]


class Sequences:
    """Sequences of different lengths, kept one after the other and padded only in batches.

    values: (L, ...), the steps of all of them; lengths: (N,), which add up to L. padding: what
    stands behind the end of a sequence in a batch.
    `sequences[index]` with a slice, integers or a mask is the batch of those; with one integer, a
    batch of one. `shape` is that of the whole set as one batch.
    Raises ShapeError where the lengths do not add up to the steps.
    """

    def __init__(
        self, values: Array, lengths: Int[Array, "N"] | Sequence[int], padding: float = 0
    ) -> None:
        self.values = values
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.padding = padding
        ends = np.cumsum(self.lengths)
        self._first = ends - self.lengths
        total = int(ends[-1]) if len(ends) else 0
        if total != len(values) or self.lengths.min(initial=0) < 0:
            raise ShapeError(
                f"Sequences: the lengths add up to {total} and there are {len(values)} steps; "
                "allowed: lengths from 0 that add up to the steps"
            )

    @classmethod
    def of(cls, sequences: Sequence[Array], padding: float = 0) -> Sequences:
        """The set of these arrays (T, ...). Raises ShapeError where they differ in more than T.

        Raises ArgumentError where there are none.
        """
        if not sequences:
            raise ArgumentError("Sequences: there are none; allowed: one sequence or more")
        shapes = {array.shape[1:] for array in sequences}
        if len(shapes) > 1:
            raise ShapeError(
                f"Sequences: one step has shape {' or '.join(map(str, sorted(shapes)))}; "
                "allowed: the same in all sequences, and images of one size"
            )
        return cls(np.concatenate(sequences), np.array([len(s) for s in sequences]), padding)

    def __repr__(self) -> str:
        steps = f"{min(self.lengths, default=0)} to {max(self.lengths, default=0)} steps"
        shape = tuple(self.values.shape[1:])
        return f"<Sequences: {len(self.lengths):,} of {steps} of shape {shape}>"

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self), int(self.lengths.max(initial=0)), *self.values.shape[1:]

    @property
    def ndim(self) -> int:
        return 1 + int(self.values.ndim)

    @property
    def dtype(self) -> DType:
        dtype: DType = self.values.dtype
        return dtype

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: Index) -> Ragged:
        rows: Any = np.arange(len(self))
        chosen = np.atleast_1d(rows[index])
        lengths = self.lengths[chosen]
        multiple = _multiple.get()
        most = -(-lengths.max(initial=0) // multiple) * multiple
        steps = np.arange(min(most, self.lengths.max(initial=0)))
        real = steps < lengths[:, None]
        x = np.full((*real.shape, *self.values.shape[1:]), self.padding, self.dtype)
        x[real] = self.values[(self._first[chosen][:, None] + steps)[real]]
        return Ragged(x, lengths)

    def take(self, index: Index) -> Sequences:
        """The sequences at `index`, as a set of their own."""
        batch = self[index]
        real = np.arange(batch.x.shape[1]) < batch.lengths[:, None]
        return Sequences(batch.x[real], batch.lengths, self.padding)


def batch_order(
    lengths: Int[Array, "N"], batch_size: int, rng: np.random.Generator, pool: int = 1
) -> Int[Array, "N"]:
    """An order of the examples for one epoch, to be cut every `batch_size` of them.

    All are shuffled; then, among the examples of each `pool` batches, those of similar length come
    together, so that little is padded, and the batches are shuffled. What is left for a batch that
    is not full stays at the end. pool = 1 only shuffles.
    Raises ArgumentError where a number is below 1.
    """
    for name, value in (("batch_size", batch_size), ("pool", pool)):
        if value < 1:
            raise ArgumentError(f"batch_order: {name} is {value}; allowed: an integer from 1")
    shuffled = rng.permutation(len(lengths))
    size = batch_size * pool
    pools = [shuffled[first : first + size] for first in range(0, len(shuffled), size)]
    order = np.concatenate([shuffled[:0], *(p[lengths[p].argsort(kind="stable")] for p in pools)])
    full = len(order) // batch_size * batch_size
    batches = rng.permutation(order[:full].reshape(-1, batch_size))
    return np.concatenate([batches.reshape(-1), order[full:]])
