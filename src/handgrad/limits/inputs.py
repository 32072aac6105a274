"""The examples on one side of a kernel, and the vectors that a network reads of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError


class InputPosition(NamedTuple):
    """The entries of an example that one vector has: those at a position, along the features' axis.

    `features` says where that axis is: before the positions, as the channels of an image, behind
    them, as in a sequence, or nowhere: tokens, which are numbers; "flat" is all of them.
    With `backwards` the positions of every sequence count from its own end.
    """

    features: Literal["first", "last", "none", "flat"]
    position: tuple[int, ...]
    backwards: bool = False


class Side:
    """Examples x (N, …), each with its length where they are sequences.

    Raises ShapeError for lengths that do not fit, ArgumentError for values that are not finite.
    """

    def __init__(self, x: Array, lengths: Array | None = None) -> None:
        self.x = np.asarray(x)
        if self.x.dtype.kind not in "iufb":
            raise ArgumentError(
                f"limits: x has the type {self.x.dtype}; allowed: real numbers, or tokens"
            )
        if self.x.ndim < 2:
            raise ShapeError(f"limits: x has shape {self.x.shape}; allowed: (N, …)")
        if lengths is not None:
            # Padding must not count, whatever it holds.
            steps = np.arange(self.x.shape[1]) < np.asarray(lengths)[:, None]
            self.x = np.where(steps.reshape(*steps.shape, *[1] * (self.x.ndim - 2)), self.x, 0)
        if self.x.dtype.kind not in "iu":
            self.x = self.x.astype(np.float64, copy=False)
            if not np.isfinite(self.x).all():
                raise ArgumentError("limits: x has NaN or infinity; allowed: finite values")
        self.count = len(self.x)
        self._lengths = None if lengths is None else np.asarray(lengths)

    @property
    def is_ragged(self) -> bool:
        return self._lengths is not None

    @property
    def lengths(self) -> Array:
        """The number of steps of every example."""
        if self._lengths is None:
            return np.full(self.count, self.x.shape[1])
        return self._lengths

    def transform(self, change: Callable[[Array], Array]) -> None:
        """Put a function of all examples together in their place, before anything reads them."""
        self.x = change(self.x)

    def part(self, chosen: slice) -> Side:
        """Some of the examples."""
        return Side(self.x[chosen], None if self._lengths is None else self._lengths[chosen])

    def values(self, at: InputPosition) -> Array:
        """The vectors at one place, (N, D), or the tokens there, (N,)."""
        position: tuple[Any, ...] = at.position
        if at.features == "flat":
            return self.x.reshape(self.count, -1)
        if at.backwards:
            step = np.clip(self.lengths - 1 - position[0], 0, None)
            return self.x[np.arange(self.count), step]
        if at.features == "first":
            position = (slice(None), *position)
        return np.ascontiguousarray(self.x[(slice(None), *position)])


def sides(
    x: Array, x2: Array | None, lengths: Array | None, lengths2: Array | None
) -> tuple[Side, Side | None]:
    """Both sides, sequences of different lengths filled up to the longest.

    Raises ShapeError for examples of different shapes, ArgumentError for lengths without x2.
    """
    x = _array("x", x)
    left = Side(x, _checked("lengths", lengths, x))
    if x2 is None:
        if lengths2 is not None:
            raise ArgumentError("limits: lengths2 is given without x2; allowed: both")
        return left, None
    x2 = _array("x2", x2)
    one, other = np.shape(x), np.shape(x2)
    if len(one) != len(other) or one[2:] != other[2:]:
        raise ShapeError(f"limits: x2 has shape {other}; allowed: (M, …) as x, of shape {one}")
    lengths2 = _checked("lengths2", lengths2, x2)
    if one[1:] == other[1:]:
        return left, Side(x2, lengths2)
    if len(one) != 3 and np.asarray(x).dtype.kind not in "iu":
        raise ShapeError(f"limits: x2 has shape {other}; allowed: (M, …) as x, of shape {one}")
    longest = max(one[1], other[1])
    return (
        Side(_filled(np.asarray(x), longest), left.lengths),
        Side(_filled(np.asarray(x2), longest), Side(x2, lengths2).lengths),
    )


def _array(name: str, x: Any) -> Array:
    try:
        return np.asarray(x)
    except ValueError:
        raise ShapeError(f"limits: {name} is no array; allowed: examples of one shape") from None


def _checked(name: str, lengths: Array | None, x: Array) -> Array | None:
    if lengths is None:
        return None
    lengths = np.asarray(lengths)
    if lengths.shape != (len(x),) or lengths.dtype.kind not in "iu":
        raise ShapeError(
            f"limits: {name} has shape {lengths.shape} and type {lengths.dtype}; "
            f"allowed: integers ({len(x)},)"
        )
    if np.ndim(x) < 2:
        raise ShapeError(f"limits: x has shape {np.shape(x)}; allowed: (N, T, …) with {name}")
    longest = np.shape(x)[1]
    if len(lengths) and not (lengths.min() >= 1 and lengths.max() <= longest):
        raise ArgumentError(
            f"limits: {name} goes from {lengths.min()} to {lengths.max()}; "
            f"allowed: 1 to {longest}, the steps of x"
        )
    return lengths


def _filled(x: Array, steps: int) -> Array:
    """Sequences with zeros after their end."""
    missing = [(0, 0), (0, steps - x.shape[1])] + [(0, 0)] * (x.ndim - 2)
    return np.pad(x, missing)


def joined(left: Side, right: Side) -> Side:
    """Both sides as one."""
    ragged = left.is_ragged or right.is_ragged
    lengths = np.concatenate([left.lengths, right.lengths]) if ragged else None
    return Side(np.concatenate([left.x, right.x]), lengths)
