"""Sums that are constant: Σ(x − μ) = 0 follows from what μ is, Σ q = 1 is stated by who knows the
data.

A softmax needs no fact: it is e / Σ e as a product, and summed the two cancel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from handgrad.deriving.algebra.read import Reader, written_out
from handgrad.deriving.algebra.terms import Fact, Reason, Sum, axes_of
from handgrad.errors import ArgumentError
from handgrad.program.node import Node

#: A sum that is constant up to this share of its terms is constant.
_SAME: Final = 1e-9
_STATED: Final = re.compile(r"(?:np\.)?sum\((\w+),(?:axis=)?(-?\d+)\)")


@dataclass(frozen=True)
class Assumption:
    """A stated fact: the sum of an argument over an axis."""

    text: str
    name: str
    axis: int
    value: float

    def true_of(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """The array, changed so that the fact holds."""
        if not -array.ndim <= self.axis < array.ndim:
            raise ArgumentError(
                f"derive: assume {self.text!r}: {self.name} has "
                f"{array.ndim} axes; allowed: one of them"
            )
        if self.value == 0:
            return np.asarray(array - array.mean(self.axis, keepdims=True))
        positive = np.abs(array) + 0.1
        return np.asarray(positive * (self.value / positive.sum(self.axis, keepdims=True)))

    def fact(self, reader: Reader, inputs: Iterable[Node]) -> Fact:
        node = next((n for n in inputs if n.name == self.name and n.ndim), None)
        if node is None:
            raise ArgumentError(
                f"derive: assume {self.text!r}: {self.name} is no array; allowed: an argument"
            )
        why = (f"assumed: {self.text} = {self.value:g}",)
        axis = self.axis % node.ndim
        return Fact(reader.table.number(node), frozenset({axis}), Fraction(repr(self.value)), why)


def assumptions(given: Mapping[str, float] | None) -> list[Assumption]:
    """Facts such as {"sum(q, -1)": 1}. Raises ArgumentError for any other form."""
    found = []
    for text, value in (given or {}).items():
        stated = _STATED.fullmatch(text.replace(" ", ""))
        if stated is None or not isinstance(value, int | float):
            raise ArgumentError(
                f"derive: assume has {text!r}: {value!r}; allowed: sums over one axis, as "
                '"sum(q, -1)": 1'
            )
        found.append(Assumption(text, stated[1], int(stated[2]), float(value)))
    return found


def made_true(
    stated: Iterable[Assumption], name: str, array: NDArray[np.float64]
) -> NDArray[np.float64]:
    """An argument for which all that is stated about it holds."""
    for each in stated:
        if each.name == name:
            array = each.true_of(array)
    return array


def found_facts(reader: Reader, nodes: Iterable[Node]) -> list[Fact]:
    """Sums of computed arrays that are constant by what these arrays are.

    The values of the example say where to look; only what the definitions prove is a fact.
    """
    found = []
    for node in nodes:
        form = reader.form(node) if node.kind == "f" and node.ndim else {}
        if len(form) < 2:
            continue
        for over in _candidates(reader, node, form):
            if (value := _constant(node, over)) is None:
                continue
            names = {axis: reader.table.fresh() for axis in over}
            bound = {names[axis]: node.shape[axis] for axis in over}
            one: Sum = {(): Fraction(1)}
            total = reader.table.multiply(reader.table.renamed(form, names), one, bound)
            total = written_out(reader, total)
            if total == ({(): value} if value else {}):
                why = ("Σ ", node, f" = {value}, because ", *_meaning(node, value))
                found.append(Fact(reader.table.number(node), over, value, why))
    return found


def _candidates(reader: Reader, node: Node, form: Sum) -> set[frozenset[int]]:
    """Axes that a part of the sum was summed over already, or over which a part is known: there
    something may cancel.
    """
    axes = frozenset(axes_of(node))
    found = {axes - {index for factor in term for index in factor.indices} for term in form}
    for factor in {factor for term in form for factor in term}:
        for fact in reader.table.facts.get(factor.base, ()):
            base = reader.table.bases[fact.base]
            assert isinstance(base, Node)
            places = dict(zip(axes_of(base), factor.indices, strict=True))
            found.add(frozenset(places[axis] for axis in fact.over if axis in places))
    return {each for each in found if each}


def _constant(node: Node, over: frozenset[int]) -> Fraction | None:
    with np.errstate(over="ignore"):  # of scores that a mask makes the least of their type
        total = np.sum(node.value, axis=tuple(over))
        scale = np.sum(np.abs(node.value), axis=tuple(over)) + 1e-300
    if not np.all(np.isfinite(scale)):
        return None
    for value in (0, 1):
        if np.all(np.abs(total - value) <= _SAME * scale):
            return Fraction(value)
    return None


def _meaning(node: Node, value: Fraction) -> Reason:
    if node.op == "subtract" and not value:
        left, right = node.args
        return ("Σ(", left, " − ", right, ") = 0")
    return ("of what it is made of",)
