"""Equations and settings of a model as they stand on the page, with or without their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np

from handgrad.derivation.documents.document import Equation as Line
from handgrad.derivation.documents.document import Paragraph
from handgrad.derivation.equations.dimensions import Dimensions
from handgrad.derivation.equations.equations import Equation, Meaning
from handgrad.derivation.formulas.formula import (
    Fenced,
    Formula,
    Lines,
    Number,
    Row,
    Script,
    Sign,
    Symbol,
    equals,
    row,
    separated,
)
from handgrad.derivation.formulas.numbers import assignment, matrix, number

_NOTHING = Row(())


class Board:
    """Equations numbered through, each written once; with `numbers` its values follow."""

    def __init__(self, numbers: bool, say: Callable[[str], str]) -> None:
        self.numbers = numbers
        self.say = say
        self.count = 0
        self.known: set[Formula] = set()

    def lines(self, equations: Iterable[Equation]) -> Iterator[Line | Paragraph]:
        """The equations, and before those of a loop what it runs over."""
        before = None
        for loop, group in groupby(equations, key=lambda each: each.loop):
            found = list(group)
            written = list(self._of_steps(found) if loop is not None else self._group(found))
            if written and loop is not None:
                yield Paragraph((f"{self.say('for_every')} ", loop, ":"))
                if any(each.updates for each in found):
                    yield Paragraph(self.say("rounds"))
            elif written and before is not None:
                yield Paragraph(self.say("after_rounds"))
            before = loop
            yield from written

    def _of_steps(self, equations: Iterable[Equation]) -> Iterator[Line | Paragraph]:
        """What every step computes, and then each of them with its numbers."""
        every = list(equations)
        yield from self._group((each for each in every if not each.again), plain=True)
        if not self.numbers:
            return
        for step, group in groupby(every, key=lambda each: each.step):
            if step is not None:
                yield Paragraph((step, ":"))
            for each in group:
                if each.here is not None and not each.here.says_nothing:
                    yield self.line(with_numbers(each.here), each.shape)

    def _group(self, equations: Iterable[Equation], *, plain: bool = False) -> Iterator[Line]:
        for equation in equations:
            sign = "←" if equation.updates else "="
            both = row(equation.left, Sign(sign), equation.right)
            if both in self.known and not equation.again:
                continue
            self.known.add(both)
            if self.numbers and not plain:
                yield self.line(with_numbers(equation, sign=sign), equation.shape)
            elif not equation.again and not equation.says_nothing:
                yield self.line(both, equation.shape)

    def line(self, formula: Formula, shape: Formula | None = None) -> Line:
        self.count += 1
        return Line(formula, str(self.count), shape)


def with_numbers(
    equation: Equation, arranged: Callable[[Any], Any] = np.asarray, sign: str = "="
) -> Formula:
    """name = formula = the formula with its numbers = the matrix, a line for each.

    `arranged` is how an array is shown; `sign` stands before the formula.
    """
    right = [] if equation.says_nothing else [equation.right]
    if equation.figures is not None:
        right.append(equation.figures)
    signs = iter((sign, *("=" for _ in equation.parts), "=", "="))
    slices: list[tuple[Formula, Formula]] = []
    for name, value in equation.parts:
        written = matrix(arranged(value), name=indexable(name))
        if isinstance(written, Lines):
            slices += written.rows
        elif len(equation.parts) > 1:
            slices.append((name, row(Sign("="), written)))
        elif written != equation.figures:
            right.append(written)
    if not right:
        return Lines(tuple(slices))
    first, *rest = (row(Sign(next(signs)), each) for each in right)
    if not rest and not slices:
        return row(equation.left, first)
    return Lines(((equation.left, first), *((_NOTHING, each) for each in rest), *slices))


def assigned(symbol: Formula, value: Any) -> Formula:
    """symbol = its matrix"""
    written = assignment(indexable(symbol), value)
    return written if isinstance(written, Lines) else equals(symbol, matrix(value))


def put_in(left: Formula, rule: Formula | None, figures: Formula | None, value: Any) -> Formula:
    """left and its rule, the rule with its numbers, and the matrix that comes out, as are given."""
    drawn = matrix(value, name=indexable(left))
    if rule is None:
        return drawn if isinstance(drawn, Lines) else row(left, Sign("←"), drawn)
    lines = [(left, rule)]
    if figures is not None:
        lines.append((_NOTHING, row(Sign("="), figures)))
    if isinstance(drawn, Lines):
        return Lines((*lines, *drawn.rows))
    return Lines((*lines, (_NOTHING, row(Sign("="), drawn))))


def settings(meanings: Iterable[Meaning], sizes: Dimensions) -> list[Formula]:
    """M = 64 N, p = (1, 1), ... of the meanings that are numbers."""
    found = []
    for meaning in meanings:
        value = _setting(meaning, sizes)
        if value is not None:
            found.append(equals(meaning.symbol, value))
    return found


def _setting(meaning: Meaning, sizes: Dimensions) -> Formula | None:
    """A number, or one for every axis; what is computed goes by the batch."""
    value = meaning.value
    if isinstance(value, tuple) and all(isinstance(each, int) for each in value):
        return Fenced(separated(tuple(Number(str(each)) for each in value)))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if meaning.definition is not None and isinstance(value, int):
        return sizes.size(value)
    if meaning.definition is not None and sizes.letters:
        return meaning.definition
    return number(value)


def indexable(symbol: Formula) -> Formula:
    """A symbol that can take an index."""
    return symbol if isinstance(symbol, Symbol | Script) else Fenced(symbol)
