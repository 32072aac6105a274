"""What a trainer draws batches from, where one example is more than a row of an array.

An epoch goes through `order`, cut every `batch_size`, and asks `gather` for each batch; judging a
model goes through `every` in the same way. What an index stands for is the source's own affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from handgrad.arrays import Array
from handgrad.data.ragged import Ragged, Sequences, batch_order
from handgrad.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import Int

#: Examples of so many batches are sorted by length together.
POOL = 50


class Source(Protocol):
    """Batches for training and judging."""

    def __len__(self) -> int:
        """Examples in an epoch."""

    def order(self, batch_size: int, rng: np.random.Generator) -> Int[Array, "N"]:
        """The examples of one epoch, in the order in which it visits them."""

    def every(self) -> Int[Array, "M"]:
        """The examples that a model is judged on, in an order that never changes."""

    def gather(self, index: Int[Array, "B"]) -> tuple[Any, Array]:
        """What the model takes, a tuple of arrays, and the targets of its loss."""


@dataclass(frozen=True)
class Labelled:
    """Sequences (N, T, ...) with one label each: batches are (x, lengths) and the labels.

    pool: see `batch_order`. Raises DataError unless there is a label for each sequence.
    """

    x: Sequences
    y: Int[Array, "N"]
    pool: int = POOL

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise DataError(
                f"there are {len(self.x)} sequences and {len(self.y)} labels; "
                "expected one label for each sequence"
            )

    def __len__(self) -> int:
        return len(self.y)

    def order(self, batch_size: int, rng: np.random.Generator) -> Int[Array, "N"]:
        return batch_order(self.x.lengths, batch_size, rng, self.pool)

    def every(self) -> Int[Array, "N"]:
        return np.arange(len(self))

    def gather(self, index: Int[Array, "B"]) -> tuple[Ragged, Array]:
        return self.x[index], self.y[index]
