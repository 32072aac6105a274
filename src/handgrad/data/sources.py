"""Sources of batches for a trainer, where one example is more than a row of an array.

An epoch goes through `order`, cut every `batch_size`, and asks `gather` for each batch; judging a
model goes through `every` in the same way. What an index stands for is the source's own affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Pixels
from handgrad.data.ragged import Ragged, Sequences, batch_order
from handgrad.errors import DataError, ShapeError

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

    def gather(self, index: Int[Array, "B"]) -> tuple[tuple[Array, ...], Array]:
        """The inputs of the model, a tuple of arrays, and the targets of its loss."""


class Arrays:
    """Examples that are rows of x, with one target each: batches are ((x,), y).

    Every batch is gathered into the same memory, so it is to be used before the next one. Pixels
    and floating-point inputs arrive in `dtype`, if that is given; indices as they are.
    Raises ShapeError unless there are as many targets as examples.
    """

    def __init__(self, x: Array | Pixels, y: Array, dtype: Any = None) -> None:
        if len(x) != len(y):
            raise ShapeError(f"x has {len(x)} examples and y {len(y)}; allowed: as many of each")
        dtype = np.dtype(x.dtype if dtype is None else dtype)
        self._pixels = isinstance(x, Pixels)
        self._values = x.values if isinstance(x, Pixels) else x
        self._divisor = dtype.type(x.maximum) if isinstance(x, Pixels) else None
        self._targets = y
        self._dtype = dtype if x.dtype.kind == "f" else self._values.dtype
        self._size = 0

    def __len__(self) -> int:
        return len(self._targets)

    def order(self, batch_size: int, rng: np.random.Generator) -> Int[Array, "N"]:
        return rng.permutation(len(self))

    def every(self) -> Int[Array, "N"]:
        return np.arange(len(self))

    def gather(self, index: Int[Array, "B"]) -> tuple[tuple[Array], Array]:
        count = len(index)
        if count > self._size:
            self._allocate(count)
        # mode="clip": with "raise" NumPy would gather into a buffer of its own and copy it.
        x = self._values.take(index, 0, self._x[:count], "clip")
        y = self._targets.take(index, 0, self._y[:count], "clip")
        if self._converted is None:
            return (x,), y
        converted = self._converted[:count]
        if self._divisor is None:
            np.copyto(converted, x, casting="same_kind")
        else:
            np.divide(x, self._divisor, out=converted)
        return (converted,), y

    def _allocate(self, size: int) -> None:
        self._size = size
        self._x = np.empty((size, *self._values.shape[1:]), self._values.dtype)
        self._y = np.empty((size, *self._targets.shape[1:]), self._targets.dtype)
        converts = self._pixels or self._values.dtype != self._dtype
        self._converted = np.empty(self._x.shape, self._dtype) if converts else None


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


@dataclass(frozen=True)
class Tagged:
    """Sequences (N, T, ...) with a class for each step: batches are (x, lengths) and tags (N, T).

    Behind the end of a sequence stands the padding of `y`, which the loss has to ignore.
    pool: see `batch_order`. Raises DataError unless there is a tag for each step.
    """

    x: Sequences
    y: Sequences
    pool: int = POOL

    def __post_init__(self) -> None:
        if not np.array_equal(self.x.lengths, self.y.lengths):
            raise DataError(
                "sequences and tags differ in their lengths; expected one tag for each step"
            )

    def __len__(self) -> int:
        return len(self.y)

    def order(self, batch_size: int, rng: np.random.Generator) -> Int[Array, "N"]:
        return batch_order(self.x.lengths, batch_size, rng, self.pool)

    def every(self) -> Int[Array, "N"]:
        return np.arange(len(self))

    def gather(self, index: Int[Array, "B"]) -> tuple[Ragged, Array]:
        return self.x[index], self.y[index].x


def as_source(data: Any, part: str, dtype: Any = None) -> Source:
    """A source as it is; a pair (x, y), or the part of a data set of that name, as one.

    part: "train", "validation" or "test". dtype: see `Arrays`. Raises ShapeError, or DataError for
    sequences, where x and y differ in length.
    """
    if hasattr(data, "gather"):
        source: Source = data
        return source
    named = hasattr(data, f"x_{part}")
    x, y = (getattr(data, f"x_{part}"), getattr(data, f"y_{part}")) if named else data
    if isinstance(x, Sequences):
        return Tagged(x, y) if isinstance(y, Sequences) else Labelled(x, np.asarray(y))
    try:
        return Arrays(x if isinstance(x, Pixels) else np.asarray(x), np.asarray(y), dtype)
    except ShapeError as error:
        raise ShapeError(f"{part} data: {error}") from None
