"""Rounding errors of functions of single elements, and of choices between them.

What the operands bring along is carried on: through monotone functions by their values at both ends
of the interval, through comparisons by a mark on those elements whose outcome is in doubt, of which
`where` then covers both branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from handgrad.checking.rounding.model import (
    LIBRARY,
    Arithmetic,
    Uncertain,
    computed,
    decided,
    lifted,
)

Result = TypeVar("Result")


def elementwise(rule: Callable[..., Result]) -> Callable[..., Result]:
    """A rule all of whose positional arguments are arrays or numbers."""

    def with_lifted(function: Any, arithmetic: Arithmetic, *args: Any, **keywords: Any) -> Result:
        operands = (lifted(argument, arithmetic) for argument in args)
        return rule(function, arithmetic, *operands, **keywords)

    return with_lifted


@elementwise
def add(function: Any, arithmetic: Arithmetic, a: Uncertain, b: Uncertain) -> Uncertain:
    """+ and −; of an exact zero nothing is rounded.

    The rounding counted is that of |a| + |b|, not of a + b: this may be one step of a longer sum,
    which another implementation takes in another order, with larger sums on its way.
    """
    value, error = function(a.value, b.value), a.error + b.error
    if arithmetic.skips_zeros:
        added = Uncertain(function(0.0, b.value), b.error)
        masked = np.logical_or(*(np.isneginf(x.value) & (x.error == 0) for x in (a, added)))
        value, error = np.where(masked, -np.inf, value), np.where(masked, 0.0, error)
    inexact = ~(a.is_zero | b.is_zero)
    return computed(value, error, arithmetic, inexact, a.reach + b.reach)


@elementwise
def divide(function: Any, arithmetic: Arithmetic, a: Uncertain, b: Uncertain) -> Uncertain:
    magnitude = np.abs(b.value)
    error = (np.abs(a.value) * b.error / magnitude + a.error) / (magnitude - b.error)
    unbounded = (b.error > 0) & (b.error >= magnitude) | a.is_open | b.is_open
    error = np.where(unbounded, np.inf, error)
    value = np.divide(a.value, b.value)
    if arithmetic.skips_zeros:
        left_out = a.is_zero & (b.value != 0)
        value, error = np.where(left_out, 0.0, value), np.where(left_out, 0.0, error)
    return computed(value, error, arithmetic)


def reciprocal(function: Any, arithmetic: Arithmetic, x: Uncertain) -> Uncertain:
    return divide(np.divide, arithmetic, 1.0, x)


def exact(function: Any, arithmetic: Arithmetic, x: Uncertain) -> Uncertain:
    """Changes of sign, and copies."""
    return Uncertain(np.array(function(x.value)), np.array(x.error))


def monotone(lowest: float = -np.inf, roundings: float = LIBRARY) -> Callable[..., Uncertain]:
    """An increasing function of numbers from `lowest` on."""

    def rule(function: Any, arithmetic: Arithmetic, x: Uncertain) -> Uncertain:
        value = function(x.value)
        wide = np.isinf(x.error)
        above = function(np.where(wide, np.inf, x.value + x.error)) - value
        below = value - function(np.where(wide, lowest, np.maximum(x.value - x.error, lowest)))
        error = np.where(x.is_open, np.inf, np.fmax(above, below))
        return computed(value, error, arithmetic, roundings)

    return rule


#: The square root: rounded as carefully as + and ×.
square_root: Final = monotone(0.0, roundings=1.0)


def wave(function: Any, arithmetic: Arithmetic, x: Uncertain) -> Uncertain:
    """sin and cos, whose slope is at most 1."""
    error = np.where(x.is_open, np.inf, np.minimum(x.error, 2.0))
    return computed(function(x.value), error, arithmetic, LIBRARY)


def sign(function: Any, arithmetic: Arithmetic, x: Uncertain) -> Uncertain:
    doubt = (np.abs(x.value) <= x.error) & (x.error > 0)
    return Uncertain(np.sign(x.value), np.where(doubt, 2.0, 0.0))


@elementwise
def log_add_exp(function: Any, arithmetic: Arithmetic, a: Uncertain, b: Uncertain) -> Uncertain:
    """log(eᵃ + eᵇ), a maximum plus at most log 2: an error of both operands comes through once."""
    size = np.maximum(*(np.where(np.isfinite(x.value), x.reach, 0.0) for x in (a, b))) + 1.0
    value, error = np.logaddexp(a.value, b.value), np.maximum(a.error, b.error)
    return computed(value, error, arithmetic, LIBRARY, size)


@elementwise
def extremum(function: Any, arithmetic: Arithmetic, a: Uncertain, b: Uncertain) -> Uncertain:
    """The larger or smaller of two: the error is that of the one chosen, if it is sure which."""
    value = np.asarray(function(a.value, b.value))
    sure = np.abs(a.value - b.value) > a.error + b.error
    chosen = np.where(value == a.value, a.error, b.error)
    return Uncertain(value, np.where(sure, chosen, np.maximum(a.error, b.error)))


def clip(
    function: Any,
    arithmetic: Arithmetic,
    x: Uncertain,
    low: Any = None,
    high: Any = None,
    **named: Any,
) -> Uncertain:
    low = named.get("min", named.get("a_min", low))
    high = named.get("max", named.get("a_max", high))
    x = x if low is None else extremum(np.maximum, arithmetic, x, low)
    return x if high is None else extremum(np.minimum, arithmetic, x, high)


def where(function: Any, arithmetic: Arithmetic, condition: Any, a: Any, b: Any) -> Uncertain:
    """Where the condition is in doubt, either branch; anything, if one of them is NaN."""
    a, b = lifted(a, arithmetic), lifted(b, arithmetic)
    chosen, doubt = condition, np.asarray(False)
    if isinstance(condition, Uncertain):
        chosen, doubt = condition.value, condition.error != 0
    value, error = np.where(chosen, a.value, b.value), np.where(chosen, a.error, b.error)
    either = np.maximum(a.error, b.error) + np.abs(a.value - b.value)
    either = np.where(np.isnan(either), np.inf, either)
    return Uncertain(np.asarray(value), np.where(doubt, either, error))


@elementwise
def compare(function: Any, arithmetic: Arithmetic, a: Uncertain, b: Uncertain) -> Any:
    margin = a.error + b.error
    doubt = (margin > 0) & (np.abs(a.value - b.value) <= margin)
    return decided(function(a.value, b.value), doubt)


def logical(function: Any, arithmetic: Arithmetic, *operands: Any) -> Any:
    """and, or, xor, not: the outcome is in doubt where one of its parts is."""
    value = function(*(x.value if isinstance(x, Uncertain) else x for x in operands))
    doubt = np.zeros(np.shape(value), dtype=bool)
    for x in operands:
        if isinstance(x, Uncertain):
            doubt |= x.error != 0
    return decided(value, doubt)


def is_finite(function: Any, arithmetic: Arithmetic, x: Uncertain) -> Any:
    """isfinite, isinf, isnan."""
    return decided(function(x.value), np.isinf(x.error))
