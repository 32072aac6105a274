"""Rounding errors of sums and products of arrays, extremes, and functions that only move elements.

What the operands bring along is carried on: through products by |a| Δb + |b| Δa + Δa Δb, through
extremes by the errors of those elements that may be the largest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.checking.rounding.elementwise import (
    add,
    compare,
    divide,
    elementwise,
    square_root,
)
from handgrad.checking.rounding.model import (
    LIBRARY,
    Arithmetic,
    Unbounded,
    Uncertain,
    certain,
    computed,
    decided,
    entered,
    lifted,
)


def linear(product: Callable[..., Array], arithmetic: Arithmetic, *factors: Any) -> Uncertain:
    """Any sum of products that is linear in every factor."""
    operands = [lifted(factor, arithmetic) for factor in factors]
    if not all(np.isfinite(x.reach).all() for x in operands):
        return _linear_beyond_numbers(product, arithmetic, operands)
    size = product(*(x.reach for x in operands))
    error = size - product(*(np.abs(x.value) for x in operands))
    terms = product(*(np.where(x.is_zero, 0.0, 1.0) for x in operands))
    value = product(*(x.value for x in operands))
    roundings = terms + (len(operands) - 2)
    return computed(value, np.maximum(error, 0.0), arithmetic, roundings, size)


def _linear_beyond_numbers(
    product: Callable[..., Array], arithmetic: Arithmetic, operands: list[Uncertain]
) -> Uncertain:
    """The same where some values or errors are infinite, or NaN.

    Terms of numbers have their bound. One of an unbounded factor has none, unless another of its
    factors is 0 for sure; nor has ∞ times what may be 0 or not.
    """
    bounded = [np.isfinite(x.reach) for x in operands]
    tame = (
        Uncertain(np.where(known, x.value, 0.0), np.where(known, x.error, 0.0))
        for x, known in zip(operands, bounded, strict=True)
    )
    numbers = linear(product, arithmetic, *tame)
    counts = [np.where(x.is_zero, 0.0, 1.0) for x in operands]
    # NaN times what may be 0 or not is NaN, or nothing where zeros are left out.
    beyond = np.isinf if not arithmetic.skips_zeros else lambda value: ~np.isfinite(value)
    unbounded: Array = np.zeros(numbers.value.shape)
    for i, x in enumerate(operands):
        alone = [*counts[:i], np.where(np.isinf(x.error), 1.0, 0.0), *counts[i + 1 :]]
        unbounded = unbounded + product(*alone)
        for j, other in enumerate(operands):
            if i != j:
                pair = list(counts)
                pair[i] = np.where(beyond(x.value), 1.0, 0.0)
                pair[j] = np.where((other.error > 0) & (np.abs(other.value) <= other.error), 1.0, 0)
                unbounded = unbounded + product(*pair)
    if arithmetic.skips_zeros:
        value = _without_zeros(product, operands, numbers.value)
    else:
        value = product(*(x.value for x in operands))
    return Uncertain(np.asarray(value), np.where(unbounded > 0, np.inf, numbers.error))


def _without_zeros(
    product: Callable[..., Array], operands: list[Uncertain], numbers: Array
) -> Array:
    """The sum of `numbers`, the terms of finite factors, and the other terms that have no 0."""
    finite = [np.isfinite(x.value) for x in operands]

    def beyond(factors: list[Array]) -> Array:
        """The sum of these factors' products over the terms that are NaN or infinite."""
        return product(*factors) - product(
            *(np.where(known, x, 0.0) for x, known in zip(factors, finite, strict=True))
        )

    counts = [np.where(x.is_zero, 0.0, 1.0) for x in operands]
    signs = [np.where(np.isnan(x.value), 0.0, np.sign(x.value)) for x in operands]
    of_numbers = [
        np.where(np.isnan(x.value), 0.0, n) for x, n in zip(operands, counts, strict=True)
    ]
    infinite, signed = beyond(of_numbers), beyond(signs)
    undefined = product(*counts) - product(*of_numbers)
    value = np.where(infinite > 0, np.inf * np.sign(signed), numbers)
    return np.where((undefined > 0) | (np.abs(signed) < infinite), np.nan, value)


def multiply(
    function: Any, arithmetic: Arithmetic, a: Any, b: Any, *options: Any, **named: Any
) -> Uncertain:
    """× and the products of two matrices or vectors."""
    return linear(lambda a, b: function(a, b, *options, **named), arithmetic, a, b)


def einsum(function: Any, arithmetic: Arithmetic, subscripts: str, *factors: Any) -> Uncertain:
    return linear(lambda *parts: function(subscripts, *parts), arithmetic, *factors)


def square(function: Any, arithmetic: Arithmetic, x: Any) -> Uncertain:
    return linear(np.multiply, arithmetic, x, x)


@elementwise
def power(function: Any, arithmetic: Arithmetic, x: Uncertain, y: Uncertain) -> Uncertain:
    """|x|^y is monotone in |x|; the exponent is to be exact."""
    exponent = certain(y)
    if exponent.ndim == 0 and exponent == 2:
        return square(np.square, arithmetic, x)
    magnitude = np.abs(x.value)
    ends = magnitude + x.error, np.maximum(magnitude - x.error, 0.0)
    changes = (np.abs(end**exponent - magnitude**exponent) for end in ends)
    return computed(x.value**exponent, np.maximum(*changes), arithmetic, LIBRARY)


def sum(
    function: Any, arithmetic: Arithmetic, x: Uncertain, axis: Any = None, keepdims: bool = False
) -> Uncertain:
    def total(part: Array) -> Array:
        return np.sum(part, axis=axis, keepdims=keepdims)

    terms = total(np.where(x.is_zero, 0.0, 1.0))
    size = total(x.reach)
    roundings = np.maximum(terms - 1, 0.0)
    return computed(total(x.value), total(x.error), arithmetic, roundings, size)


def mean(
    function: Any, arithmetic: Arithmetic, x: Uncertain, axis: Any = None, keepdims: bool = False
) -> Uncertain:
    total = sum(np.sum, arithmetic, x, axis, keepdims)
    count = x.value.size / max(total.value.size, 1)
    return divide(np.divide, arithmetic, total, count)


def variance(
    function: Any,
    arithmetic: Arithmetic,
    x: Uncertain,
    axis: Any = None,
    keepdims: bool = False,
    ddof: float = 0.0,
    correction: float = 0.0,
) -> Uncertain:
    centred = add(np.subtract, arithmetic, x, mean(np.mean, arithmetic, x, axis, True))
    squares = square(np.square, arithmetic, centred)
    total = sum(np.sum, arithmetic, squares, axis, keepdims)
    count = x.value.size / max(total.value.size, 1) - ddof - correction
    return divide(np.divide, arithmetic, total, count)


def deviation(function: Any, arithmetic: Arithmetic, *args: Any, **keywords: Any) -> Uncertain:
    return square_root(np.sqrt, arithmetic, variance(np.var, arithmetic, *args, **keywords))


def norm(
    function: Any,
    arithmetic: Arithmetic,
    x: Uncertain,
    ord: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Uncertain:
    """The root of the sum of squares; of other norms nothing is known."""
    if ord is not None:
        raise Unbounded(f"norm of order {ord}")
    squares = square(np.square, arithmetic, x)
    return square_root(np.sqrt, arithmetic, sum(np.sum, arithmetic, squares, axis, keepdims))


def cumulative(
    function: Any, arithmetic: Arithmetic, x: Uncertain, axis: int | None = None
) -> Uncertain:
    error, size = (np.cumsum(part, axis) for part in (x.error, x.reach))
    terms = np.cumsum(np.where(x.is_zero, 0.0, 1.0), axis)
    roundings = np.maximum(terms - 1, 0.0)
    return computed(np.cumsum(x.value, axis), error, arithmetic, roundings, size)


def largest(
    function: Any, arithmetic: Arithmetic, x: Uncertain, axis: Any = None, keepdims: bool = False
) -> Uncertain:
    """The largest error among those that may be the maximum."""
    certainly = np.max(x.value - x.error, axis=axis, keepdims=True)
    errors = np.where(x.value + x.error >= certainly, x.error, 0.0)
    value, error = (np.max(part, axis=axis, keepdims=keepdims) for part in (x.value, errors))
    return Uncertain(np.asarray(value), np.asarray(error))


def smallest(
    function: Any, arithmetic: Arithmetic, x: Uncertain, axis: Any = None, keepdims: bool = False
) -> Uncertain:
    negative = Uncertain(-x.value, x.error)
    found = largest(np.max, arithmetic, negative, axis, keepdims)
    return Uncertain(-found.value, found.error)


def position_of_largest(
    function: Any,
    arithmetic: Arithmetic,
    x: Uncertain,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    if axis is None:
        x, axis = Uncertain(np.ravel(x.value), np.ravel(x.error)), 0
    first = np.argmax(x.value, axis=axis, keepdims=True)
    least = np.take_along_axis(x.value - x.error, first, axis)
    error = np.take_along_axis(x.error, first, axis)
    rivals = (x.value + x.error >= least) & (x.error + error > 0)
    doubt = np.sum(rivals, axis=axis, keepdims=True) > (error > 0)  # it is a rival of itself
    if keepdims:
        return decided(first, doubt, np.inf)
    return decided(np.squeeze(first, axis), np.squeeze(doubt, axis), np.inf)


def move(function: Any, arithmetic: Arithmetic, x: Any, *arguments: Any, **named: Any) -> Any:
    """A function that only puts elements elsewhere: of one array, or of a sequence of arrays."""
    arrays = [lifted(one, arithmetic) for one in x] if isinstance(x, (list, tuple)) else x
    arguments, named = certain(arguments), {name: certain(named[name]) for name in named}

    def moved(part: str) -> Any:
        several = isinstance(arrays, list)
        parts = [getattr(one, part) for one in arrays] if several else getattr(arrays, part)
        return function(parts, *arguments, **named)

    value, error = moved("value"), moved("error")
    if isinstance(value, (list, tuple)):
        return [Uncertain(*both) for both in zip(value, error, strict=True)]
    return Uncertain(np.asarray(value), np.asarray(error))


def pad(
    function: Any,
    arithmetic: Arithmetic,
    x: Uncertain,
    widths: Any,
    mode: str = "constant",
    constant_values: Any = 0.0,
) -> Uncertain:
    options: dict[str, Any] = {"mode": mode}
    filled = options | ({"constant_values": constant_values} if mode == "constant" else {})
    return Uncertain(np.pad(x.value, widths, **filled), np.pad(x.error, widths, **options))


def like(function: Any, arithmetic: Arithmetic, x: Uncertain, *fill: Any, **named: Any) -> Any:
    made = function(x.value, *certain(fill), **named)
    return entered(made, arithmetic) if made.dtype.kind == "f" else made


def as_type(function: Any, arithmetic: Arithmetic, x: Uncertain, dtype: Any, **named: Any) -> Any:
    kind = np.dtype(dtype).kind
    if kind == "f":
        if np.finfo(dtype).eps > 2 * arithmetic.unit:
            raise Unbounded(f"a conversion to {np.dtype(dtype)}")
        return Uncertain(x.value.astype(np.float64), np.array(x.error))
    if kind == "b":
        return compare(np.not_equal, arithmetic, x, 0.0)
    return certain(x).astype(dtype)


def of_certain(function: Any, arithmetic: Arithmetic, *args: Any, **named: Any) -> Any:
    return function(*certain(args), **named)


def of_values(function: Any, arithmetic: Arithmetic, x: Uncertain) -> Any:
    return function(x.value)
