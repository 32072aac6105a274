"""Values that may be off, and what every rounding adds: the standard model of arithmetic.

With u the unit roundoff:

- fl(a ∘ b) = (a ∘ b)(1 + d) with |d| ≤ u for ∘ one of + − × / and the square root;
- a sum of n terms in any order is off by at most (n − 1) u Σ|terms|; exact zeros do not count;
- exp, log, tanh and the like are off by `LIBRARY` units: assumed, as no standard demands it;
- below the smallest normal number a result may be flushed to 0, and in a sum every partial result;
  above the largest, anything may be.

A rule, in the modules beside, is a function of the function it stands for, the arithmetic, and the
arguments, in which every array that may be off is `Uncertain`.

Source: Higham, Accuracy and Stability of Numerical Algorithms (2002), sections 2.2, 3.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import HandgradError

#: A rule; see above.
Rule = Callable[..., Any]

#: Error of exp, log, sin, tanh, ... in units u of the result: four units in the last place, which
#: is what vectorised libraries promise; ours are within three.
LIBRARY: Final = 8.0


class Unbounded(HandgradError):  # noqa: N818
    """A step for which there is no rule, or which needs certain values and got others."""

    def __init__(self, step: str) -> None:
        super().__init__(f"no bound of rounding errors is known for {step}")


class Arithmetic(NamedTuple):
    """A floating point format: unit roundoff, smallest normal and largest number.

    skips_zeros: what is masked is left out. So 0 · ∞, 0 · NaN and 0 / NaN count as 0 where the 0 is
    exact, and −∞ − NaN, as of a masked score, as −∞.
    """

    unit: float
    smallest: float
    largest: float
    skips_zeros: bool = False

    def rounded(self, x: Array) -> Array:
        """x rounded to the precision of this format."""
        fraction, exponent = np.frexp(x)
        return np.ldexp(np.rint(fraction / self.unit) * self.unit, exponent)


@dataclass(frozen=True, slots=True)
class Uncertain:
    """Values and, of the same shape, how far they may be off.

    A bool in doubt is off by 1, an index in doubt by ∞.
    """

    value: Array
    error: Array

    @property
    def is_zero(self) -> Array:
        """Where the value is 0 for sure."""
        return (self.value == 0) & (self.error == 0)

    @property
    def is_open(self) -> Array:
        """Where it is NaN or infinite and may as well be any number: ∞ times a 0 in doubt."""
        return ~np.isfinite(self.value) & np.isinf(self.error)

    @property
    def reach(self) -> Array:
        """The largest magnitude that the true value can have."""
        return np.abs(self.value) + self.error


def entered(x: Array, arithmetic: Arithmetic) -> Uncertain:
    """An array as it enters a computation: off by its own rounding."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(x - arithmetic.rounded(x))
    return Uncertain(x, np.nan_to_num(error, nan=0.0))


def lifted(x: Any, arithmetic: Arithmetic) -> Uncertain:
    """`x` where it is Uncertain, else its values as they enter."""
    return x if isinstance(x, Uncertain) else entered(x, arithmetic)


def certain(x: Any) -> Any:
    """The plain values of what must not be in doubt, in tuples too."""
    if isinstance(x, Uncertain):
        if np.any(x.error != 0):
            raise Unbounded("a branch, an index or a number made of values in doubt")
        return x.value
    return tuple(certain(part) for part in x) if isinstance(x, tuple) else x


def computed(
    value: Array,
    error: Array,
    arithmetic: Arithmetic,
    roundings: Array | float = 1.0,
    size: Array | None = None,
) -> Uncertain:
    """`error` from the operands, and `roundings` of numbers of `size` on top.

    An undefined error, as of ∞ − ∞, means that infinities went in; the same ones come out.
    """
    error = np.nan_to_num(error, nan=0.0, posinf=np.inf)
    size = np.abs(value) + error if size is None else size
    finite = np.isfinite(value)
    nonzero = finite & (size > 0)
    own = np.where(nonzero, roundings * arithmetic.unit * size, 0.0)
    # What needs no rounding may be flushed all the same: 0 + a subnormal number is 0.
    flushed = nonzero & ((np.abs(value) - error < arithmetic.smallest) | np.greater(roundings, 1))
    total = error + own + np.where(flushed, np.maximum(roundings, 1) * arithmetic.smallest, 0.0)
    total = np.where(finite & (size > arithmetic.largest), np.inf, total)
    return Uncertain(np.asarray(value), np.array(np.broadcast_to(total, np.shape(value))))


def decided(value: Array, doubt: Array, doubted: float = 1.0) -> Any:
    """A plain array where no outcome is in doubt."""
    if not np.any(doubt):
        return value
    return Uncertain(np.asarray(value), np.where(doubt, doubted, 0.0))
