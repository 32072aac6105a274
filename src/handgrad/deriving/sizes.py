"""Sizes by their letters: what a number of one run is in terms of the lengths of the axes.

A function is run at two sets of distinct prime sizes. A number that differs between the runs comes
from the sizes, as 1/√D does, and is written in their letters; one that does not is a constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from handgrad.deriving.evaluation import size
from handgrad.deriving.terms import Factor, Sum, constant, term

#: Powers of sizes that numbers of real programs have.
_POWERS: Final = tuple(map(Fraction, ("1", "-1", "1/2", "-1/2", "2", "-2", "1/4", "-1/4")))
#: Two quotients of floats are one constant where they differ by no more than their rounding.
_SAME: Final = 1e-12


@dataclass(frozen=True)
class Sizes:
    """The letters of all dimensions, each with its length in the two runs."""

    lengths: Mapping[str, tuple[int, int]]

    def letter(self, first: int, second: int) -> str | None:
        """The dimension of an axis as text, `4 * H` where it is no letter; None for length 1."""
        if first == second:
            return None if first == 1 else str(first)
        return self.text(first, second)

    def value(self, text: str, run: int) -> int:
        """The length that an expression of letters has in a run."""
        return size(text, {letter: both[run] for letter, both in self.lengths.items()})

    def text(self, first: int, second: int) -> str:
        """An integer of both runs as an expression; "" where it is none that we know."""
        if first == second:
            return str(first)
        for letters, powers in self._monomials():
            if any(power.denominator != 1 or power < 0 for power in powers):
                continue
            one, two = self._values(letters, powers)
            times = Fraction(first) / Fraction(round(one))
            if times * round(two) != second or times.denominator != 1:
                continue
            factors = [
                letter
                for letter, power in zip(letters, powers, strict=True)
                for _ in range(int(power))
            ]
            return " * ".join([*([str(times)] if times != 1 else []), *factors])
        for letter, (one, two) in self.lengths.items():
            more = first - one
            if more == second - two:
                return f"{letter} {'+' if more > 0 else '-'} {abs(more)}"
            if one // 2 == first and two // 2 == second:
                return f"{letter} // 2"
            if (one + 1) // 2 == first and (two + 1) // 2 == second:
                return f"({letter} + 1) // 2"
        for (a, (a1, a2)), (b, (b1, b2)) in itertools.permutations(self.lengths.items(), 2):
            for sign in (1, -1):
                more = first - a1 - sign * b1
                if more == second - a2 - sign * b2 and abs(more) <= 2:
                    tail = "" if not more else f" {'+' if more > 0 else '-'} {abs(more)}"
                    return f"{a} {'+' if sign > 0 else '-'} {b}{tail}"
        return ""

    def number(self, first: Any, second: Any) -> Sum | None:
        """A number of both runs as a product of sizes; None where it is none that we know."""
        if first == second:
            return constant(Fraction(repr(first)) if isinstance(first, float) else Fraction(first))
        if not (math.isfinite(first) and math.isfinite(second)) or 0 in (first, second):
            return None
        for letters, powers in self._monomials():
            one, two = self._values(letters, powers)
            times, again = first / one, second / two
            if abs(times - again) > _SAME * abs(times):
                continue
            factor = Fraction(times).limit_denominator(1000)
            if abs(float(factor) - times) > _SAME * abs(times):
                factor = Fraction(repr(float(times)))
            sizes = (Factor(f"#{x}", (), p) for x, p in zip(letters, powers, strict=True))
            return {term(sizes, ()): factor}
        return None

    def _values(
        self, letters: tuple[str, ...], powers: tuple[Fraction, ...]
    ) -> tuple[float, float]:
        one = two = 1.0
        for letter, power in zip(letters, powers, strict=True):
            one *= float(self.lengths[letter][0]) ** float(power)
            two *= float(self.lengths[letter][1]) ** float(power)
        return one, two

    def _monomials(self) -> Iterator[tuple[tuple[str, ...], tuple[Fraction, ...]]]:
        for count in (1, 2, 3):
            powers = _POWERS if count < 3 else (Fraction(1), Fraction(-1))
            for letters in itertools.combinations(self.lengths, count):
                for chosen in itertools.product(powers, repeat=count):
                    yield letters, chosen
