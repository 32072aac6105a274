"""Symbolic sizes: integer polynomials of letters, with floor quotients as atoms.

A letter stands for the length of an axis, an integer setting or a loop's counter. Two sizes are equal
when their canonical forms are, never because two lengths happen to agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

Atom = Union[str, "Quotient"]


@dataclass(frozen=True)
class Quotient:
    top: "Size"
    bottom: "Size"


@dataclass(frozen=True)
class Size:
    """A sum of coefficient × product of atoms: {("H", "W"): 2, (): 1} is 2·H·W + 1."""

    terms: tuple[tuple[tuple[Atom, ...], int], ...]

    @staticmethod
    def of(value: "int | str | Size") -> "Size":
        if isinstance(value, Size):
            return value
        if isinstance(value, str):
            return Size((((value,), 1),))
        return Size((((), int(value)),) if value else ())

    @staticmethod
    def _canonical(terms: dict) -> "Size":
        kept = [(product, c) for product, c in terms.items() if c]
        return Size(tuple(sorted(kept, key=lambda term: (-len(term[0]), repr(term[0])))))

    def __add__(self, other):
        terms = dict(self.terms)
        for product, c in Size.of(other).terms:
            terms[product] = terms.get(product, 0) + c
        return Size._canonical(terms)

    def __mul__(self, other):
        terms: dict = {}
        for p, a in self.terms:
            for q, b in Size.of(other).terms:
                product = tuple(sorted(p + q, key=repr))
                terms[product] = terms.get(product, 0) + a * b
        return Size._canonical(terms)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -Size.of(other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        return Size.of(other) - self

    def __floordiv__(self, other):
        """Exact where every term has the divisor as a factor, otherwise a quotient that stays."""
        other = Size.of(other)
        if self.constant is not None and other.constant:
            return Size.of(self.constant // other.constant)
        if self == other:
            return Size.of(1)
        if len(other.terms) == 1:
            ((atoms, c),) = other.terms
            out = {}
            for product, d in self.terms:
                left = list(product)
                for atom in atoms:
                    if atom not in left:
                        break
                    left.remove(atom)
                else:
                    if d % c == 0:
                        out[tuple(left)] = d // c
                        continue
                break
            else:
                return Size._canonical(out)
        return Size((((Quotient(self, other),), 1),))

    def __mod__(self, other):
        return self - self // other * Size.of(other)

    @property
    def constant(self) -> int | None:
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    @property
    def letters(self) -> set[str]:
        found: set[str] = set()
        for product, _ in self.terms:
            for atom in product:
                found |= {atom} if isinstance(atom, str) else atom.top.letters | atom.bottom.letters
        return found

    def at(self, letters: dict[str, "Size | int"]) -> "Size":
        """With some letters replaced by sizes or numbers."""
        total = Size.of(0)
        for product, c in self.terms:
            term = Size.of(c)
            for atom in product:
                value = (
                    letters.get(atom, atom)
                    if isinstance(atom, str)
                    else atom.top.at(letters) // atom.bottom.at(letters)
                )
                term = term * Size.of(value)
            total = total + term
        return total

    def __str__(self):
        if not self.terms:
            return "0"
        text = ""
        for product, c in self.terms:
            names = [a if isinstance(a, str) else f"({a.top}) // ({a.bottom})" for a in product]
            names = [
                f"({n})"
                if "//" in n and (len(names) > 1 or c != 1 or len(self.terms) > 1)
                else n
                for n in names
            ]
            body = " * ".join(([str(abs(c))] if abs(c) != 1 or not names else []) + names)
            text += (" - " if c < 0 else " + ") + body if text else ("-" if c < 0 else "") + body
        return text

    __repr__ = __str__


ONE = Size.of(1)
