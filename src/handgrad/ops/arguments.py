"""Checks of arguments that several ops share, each with the sentence it raises.

The dispatch has looked at kinds before: arrays are arrays of the right type of values, settings are
of Python's own types, integers lie within int64 and numbers are finite. The rest is looked at here:
shapes, ranges, and what one argument allows of another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError

#: The most values an array may have: as many float64 as an address space can hold.
MOST_VALUES: Final = (2**63 - 1) // 8


def check_choice(op: str, name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise ArgumentError unless `value` is one of `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(f"{op}: {name} is {shown(value)}; allowed: {', '.join(allowed)}")


def check_integer(op: str, name: str, value: int, least: int, most: int) -> None:
    """Raise ArgumentError unless value is from `least` to `most`."""
    if not least <= value <= most:
        raise ArgumentError(f"{op}: {name} is {shown(value)}; allowed: {least} to {most}")


def check_size(op: str, name: str, shape: Sequence[int]) -> None:
    """Raise ShapeError where an array of this shape could not exist; no memory is asked for.

    Arrays without values can make one with more than any memory: (2⁴⁰, 0) times (0, 2⁴⁰).
    """
    if math.prod(shape) > MOST_VALUES:
        raise ShapeError(
            f"{op}: {name} would have shape {tuple(shape)}; allowed: at most {MOST_VALUES} values"
        )


def check_eps(op: str, eps: float) -> None:
    """Raise ArgumentError unless eps ≥ 0."""
    if not eps >= 0.0:
        raise ArgumentError(f"{op}: eps is {eps}; allowed: 0 or more")


def check_halves(op: str, x: Array) -> None:
    """Raise ShapeError unless the last axis of x has two halves."""
    if not x.shape or x.shape[-1] % 2 != 0:
        raise ShapeError(
            f"{op}: x has shape {tuple(x.shape)}; allowed: (..., 2 H), two halves of the last axis"
        )


def check_vector(op: str, name: str, vector: Any, length: int) -> None:
    """Raise ShapeError unless `vector` has shape (length,)."""
    if vector.shape != (length,):
        raise ShapeError(f"{op}: {name} has shape {tuple(vector.shape)}; allowed: ({length},)")


def check_linear_map(op: str, x: Array, weight: Array, bias: Array | None) -> None:
    """Raise ShapeError unless x is (..., in), weight (out, in) and bias (out,) or None."""
    shape, weights = x.shape, weight.shape
    if len(weights) != 2:
        raise ShapeError(f"{op}: weight has shape {tuple(weights)}; allowed: (out, in)")
    if not shape or shape[-1] != weights[1]:
        raise ShapeError(
            f"{op}: x has shape {tuple(shape)}; allowed: (..., {weights[1]}), "
            f"because weight has shape {tuple(weights)} = (out, in)"
        )
    if bias is not None:
        check_vector(op, "bias", bias, weights[0])
    if weights[1] == 0:  # otherwise x is as large as that already
        check_size(op, "y", (*shape[:-1], weights[0]))


def check_same_shape(op: str, name: str, array: Array, x: Array) -> None:
    """Raise ShapeError unless `array` has the shape of x."""
    if tuple(array.shape) != tuple(x.shape):
        raise ShapeError(
            f"{op}: {name} has shape {tuple(array.shape)}; "
            f"allowed: {tuple(x.shape)}, the shape of x"
        )


def check_axis(op: str, axis: int, x: Array) -> None:
    """Raise ArgumentError unless x has this axis, ShapeError if the axis is empty."""
    dimensions = len(x.shape)
    if not -dimensions <= axis < dimensions:
        raise ArgumentError(
            f"{op}: axis is {axis}, but x has {dimensions} axes; "
            f"allowed: {-dimensions} to {dimensions - 1}"
        )
    if x.shape[axis] == 0:
        raise ShapeError(
            f"{op}: x has shape {tuple(x.shape)}, with nothing along axis {axis}; "
            f"allowed: at least one value there"
        )


def check_broadcast(op: str, name: str, array: Array, x: Array) -> None:
    """Raise ShapeError unless `array` broadcasts to the shape of x."""
    try:
        fits = np.broadcast_shapes(tuple(array.shape), tuple(x.shape)) == tuple(x.shape)
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{op}: {name} has shape {tuple(array.shape)}; "
            f"allowed: a shape that broadcasts to {tuple(x.shape)}, the shape of x"
        )


def check_lengths(op: str, lengths: Array, batch: int) -> None:
    """Raise ShapeError unless `lengths` has shape (batch,)."""
    check_vector(op, "lengths", lengths, batch)


def check_length_values(op: str, lengths: Array | None, most: int, name: str = "lengths") -> None:
    """Raise ArgumentError for a length outside 0 to `most`; only NumPy arrays are looked at."""
    if not isinstance(lengths, np.ndarray) or lengths.size == 0:
        return
    if not (lengths.min() >= 0 and lengths.max() <= most):
        raise ArgumentError(
            f"{op}: {name} go from {lengths.min()} to {lengths.max()}; allowed: 0 to {most}"
        )


def check_positions(op: str, x: Array, offset: int, base: float) -> None:
    """ArgumentError unless base > 0 and the positions of x (..., T, D) are exact in float64."""
    if not base > 0.0:
        raise ArgumentError(f"{op}: base is {base}; allowed: more than 0")
    steps = x.shape[-2]
    if not -(2**53) <= offset <= 2**53 - steps:
        raise ArgumentError(f"{op}: offset is {offset}; allowed: {-(2**53)} to {2**53 - steps}")
