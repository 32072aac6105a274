"""Symbolic sizes: integer polynomials of letters, with floor quotients as atoms.

A letter stands for the length of an axis, an integer setting or a loop's counter. Two sizes are
equal when their canonical forms are, never because two lengths happen to agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias


@dataclass(frozen=True)
class Quotient:
    """The floor of `top / bottom`, where that is no polynomial."""

    top: Size
    bottom: Size


Atom: TypeAlias = str | Quotient
Terms: TypeAlias = tuple[tuple[tuple[Atom, ...], int], ...]


@dataclass(frozen=True)
class Size:
    """A sum of coefficient × product of atoms: {("H", "W"): 2, (): 1} is 2·H·W + 1."""

    terms: Terms

    @staticmethod
    def of(value: int | str | Size) -> Size:
        if isinstance(value, Size):
            return value
        if isinstance(value, str):
            return Size((((value,), 1),))
        return Size((((), int(value)),) if value else ())

    def __add__(self, other: int | str | Size) -> Size:
        terms = dict(self.terms)
        for product, c in Size.of(other).terms:
            terms[product] = terms.get(product, 0) + c
        return _canonical(terms)

    def __mul__(self, other: int | str | Size) -> Size:
        terms: dict[tuple[Atom, ...], int] = {}
        for p, a in self.terms:
            for q, b in Size.of(other).terms:
                product = tuple(sorted(p + q, key=repr))
                terms[product] = terms.get(product, 0) + a * b
        return _canonical(terms)

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: int | str | Size) -> Size:
        return self + -Size.of(other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: int | str | Size) -> Size:
        return Size.of(other) - self

    def __floordiv__(self, other: int | str | Size) -> Size:
        """Exact where every term has the divisor as a factor, otherwise a quotient that stays."""
        other = Size.of(other)
        if other.constant == 0:
            raise ZeroDivisionError(f"{self} // 0")
        if self.constant is not None and other.constant is not None:
            return Size.of(self.constant // other.constant)
        if self == other:
            return ONE
        if len(other.terms) == 1:
            parts = [_divided(term, *other.terms[0]) for term in self.terms]
            exact = [part for part in parts if part is not None]
            rest = [term for term, part in zip(self.terms, parts, strict=True) if part is None]
            number = Size(tuple(rest)).constant
            if number is not None and (not number or other.constant is not None):
                return _canonical(dict(exact)) + number // (other.constant or 1)
        elif (whole := _exactly(self, other)) is not None:
            return whole
        return Size((((Quotient(self, other),), 1),))

    def __rfloordiv__(self, other: int | str | Size) -> Size:
        return Size.of(other) // self

    def __mod__(self, other: int | str | Size) -> Size:
        return self - self // other * Size.of(other)

    def __rmod__(self, other: int | str | Size) -> Size:
        return Size.of(other) % self

    @property
    def constant(self) -> int | None:
        """The number of a size without letters."""
        if not self.terms:
            return 0
        (product, c), *rest = self.terms
        return c if not product and not rest else None

    @property
    def letters(self) -> set[str]:
        return self._letters

    @cached_property
    def _letters(self) -> set[str]:
        found: set[str] = set()
        for product, _ in self.terms:
            for atom in product:
                found |= {atom} if isinstance(atom, str) else atom.top.letters | atom.bottom.letters
        return found

    def at(self, letters: Mapping[str, Size | int]) -> Size:
        """With some letters replaced by sizes or numbers."""
        if self.letters.isdisjoint(letters):
            return self
        total = Size.of(0)
        for product, c in self.terms:
            term = Size.of(c)
            for atom in product:
                if isinstance(atom, str):
                    term = term * Size.of(letters.get(atom, atom))
                else:
                    term = term * (atom.top.at(letters) // atom.bottom.at(letters))
            total = total + term
        return total

    def number(self, lengths: Mapping[str, int]) -> int:
        """The number that it is where the letters have these lengths; all must have one."""
        total = 0
        for product, c in self.terms:
            for atom in product:
                if isinstance(atom, str):
                    c *= lengths[atom]
                else:
                    c *= atom.top.number(lengths) // atom.bottom.number(lengths)
            total += c
        return total

    def slope(self, letter: str) -> int | None:
        """The whole number by which it grows with a letter, None where it is no such line."""
        step = self.at({letter: Size.of(letter) + 1}) - self
        return step.constant

    def __str__(self) -> str:
        text = ""
        for product, c in self.terms:
            alone = len(product) == 1 and c == 1 and len(self.terms) == 1
            factors = [_spelled(atom, alone) for atom in product]
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            sign = (" - " if c < 0 else " + ") if text else ("-" if c < 0 else "")
            text += sign + " * ".join(factors)
        return text or "0"

    __repr__ = __str__


def _canonical(terms: dict[tuple[Atom, ...], int]) -> Size:
    kept = [(product, c) for product, c in terms.items() if c]
    return Size(tuple(sorted(kept, key=lambda term: (-len(term[0]), repr(term[0])))))


def _divided(
    term: tuple[tuple[Atom, ...], int], atoms: tuple[Atom, ...], c: int
) -> tuple[tuple[Atom, ...], int] | None:
    """A term divided by another, None where that leaves a rest."""
    product, d = term
    left = list(product)
    for atom in atoms:
        if atom not in left:
            return None
        left.remove(atom)
    return (tuple(left), d // c) if d % c == 0 else None


def _exactly(top: Size, bottom: Size) -> Size | None:
    """A sum divided by a sum where that leaves no rest, term by term from the largest."""
    found, most = Size.of(0), len(top.terms)
    for _ in range(most):
        part = _divided(top.terms[0], *bottom.terms[0])
        if part is None:
            return None
        found, top = found + Size((part,)), top - Size((part,)) * bottom
        if not top.terms:
            return found
    return None


def _spelled(atom: Atom, alone: bool) -> str:
    if isinstance(atom, str):
        return atom
    text = f"({atom.top}) // ({atom.bottom})"
    return text if alone else f"({text})"


ONE = Size.of(1)
