"""Training examples as batches: inputs, targets, and the coefficient of each loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import assert_all_finite

from handgrad.arrays import Array
from handgrad.data.ragged import Sequences

#: Stands in padded targets behind the end of a sequence.
IGNORED = -100


class ExampleBatch(NamedTuple):
    """The model's inputs; target and coefficients; what the examples weigh together."""

    inputs: tuple[Array, ...]
    targets: tuple[Array, Array]
    weight: float


def inputs_of(x: Any, index: Array, dtype: Any) -> tuple[Array, ...]:
    """The rows of an array, of a sparse matrix or of `Sequences` as a model takes them."""
    if isinstance(x, Sequences):
        padded, lengths = x[index]
        return (padded,) if (lengths == padded.shape[1]).all() else (padded, lengths)
    if isinstance(x, np.ndarray):
        return (x.take(index, axis=0),)
    return (np.ascontiguousarray(x[index].toarray(), dtype=dtype),)


def converted(x: Any, dtype: str) -> Any:
    """The examples in this type, arrays C-contiguous; as they are if they are that already.

    Raises ValueError for a number that is too large for the type.
    """
    if isinstance(x, Sequences):
        return Sequences(converted(x.values, dtype), x.lengths)
    with np.errstate(over="ignore"):
        fitting = x.astype(dtype, copy=False)
    if fitting is not x:
        assert_all_finite(fitting, input_name="X")
    return np.ascontiguousarray(fitting) if isinstance(fitting, np.ndarray) else fitting.tocsr()


def taken(x: Any, index: Array) -> Any:
    """The examples at `index`, of whatever kind; None of None."""
    if x is None:
        return None
    return x.take(index) if isinstance(x, Sequences) else x[index]


class Examples:
    """x, y (N, ...) and the weights (N,), None where all count alike.

    The mean over the weights of a batch, times `scale`, is what coefficients make of the losses.
    """

    def __init__(
        self, x: Any, y: Array, weight: Array | None, dtype: Any, scale: float = 1.0
    ) -> None:
        self.x, self.y, self.weight, self.dtype, self.scale = x, y, weight, dtype, scale
        self._even: dict[int, Array] = {}

    def __len__(self) -> int:
        return len(self.y)

    def batch(self, index: Array) -> ExampleBatch:
        """The examples at `index`."""
        target = self.y.take(index, axis=0)
        if self.weight is None:
            weight, coefficients = float(len(index)), self._evenly(target)
        else:
            weights = self.weight[index]
            weight = float(weights.sum())
            each = self.scale / weight * weights if weight else weights
            each = each.reshape(-1, *(1,) * (target.ndim - 1))
            coefficients = np.broadcast_to(each, target.shape).astype(self.dtype)
        return ExampleBatch(inputs_of(self.x, index, self.dtype), (target, coefficients), weight)

    def _evenly(self, target: Array) -> Array:
        """The coefficients of examples that count alike, kept for the next batch of this size."""
        known = self._even.get(len(target))
        if known is None:
            known = np.full(target.shape, self.scale / len(target), dtype=self.dtype)
            self._even[len(target)] = known
        return known


class TaggedSequences:
    """Sequences with a target at every step, and a weight for each; the mean is over the steps."""

    def __init__(self, x: Sequences, y: Sequences, weight: Sequences | None, dtype: Any) -> None:
        self.x, self.y, self.weight, self.dtype = x, y, weight, dtype

    def __len__(self) -> int:
        return len(self.y)

    def batch(self, index: Array) -> ExampleBatch:
        """The sequences at `index`."""
        target, _ = self.y[index]
        real = target != IGNORED
        coefficients = real.astype(np.float64) if self.weight is None else self.weight[index].x
        weight = float(coefficients.sum())
        coefficients = (coefficients / (weight or 1.0)).astype(self.dtype)
        return ExampleBatch(inputs_of(self.x, index, self.dtype), (target, coefficients), weight)
