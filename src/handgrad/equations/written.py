"""Equations and settings as they stand on the page, with or without their numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from handgrad.documents.document import Equation as Line
from handgrad.documents.document import Link, Paragraph
from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    FormulaRow,
    Lines,
    Number,
    Script,
    Sign,
    Symbol,
    equals,
    row,
    separated,
)
from handgrad.documents.formulas.numbers import matrix, number
from handgrad.equations.dimensions import Dimensions
from handgrad.equations.equations import DerivedEquation, Meaning

_NOTHING = FormulaRow(())


class Board:
    """Equations numbered through, each stated once; with `numbers` its values follow.

    `known` are the symbols whose values stand on the board; what has a name of `results` is boxed.
    A loop over anything but steps has the numbers of every round only with `rounds`.
    """

    def __init__(
        self,
        numbers: bool,
        say: Callable[[str], str],
        known: Iterable[Formula] = (),
        *,
        results: Collection[str] = (),
        rounds: bool = True,
    ) -> None:
        self.numbers, self.say, self.rounds = numbers, say, rounds
        self._results = results
        self.known = set(known)
        self._numbered: dict[Formula, str] = {}
        #: The anchors of the equations of single steps, by the identity of these.
        self._steps: dict[int, str] = {}
        self._count = 0

    def lines(self, equations: Iterable[DerivedEquation]) -> Iterator[Line | Paragraph]:
        """The equations, and before those of a loop what it runs over."""
        before = None
        for loop, group in groupby(equations, key=lambda each: each.loop):
            found = list(group)
            if self.numbers and found[0].step is not None:
                written = list(self._of_steps(found))
            else:
                plain = not self.numbers or (loop is not None and not self.rounds)
                written = [line for each in found for line in self._written(each, plain=plain)]
            if written and loop is not None:
                yield Paragraph((f"{self.say('for_every')} ", loop, ":"))
                if any(each.updates for each in found):
                    yield Paragraph(self.say("rounds"))
            elif written and before is not None:
                yield Paragraph(self.say("after_rounds"))
            before = loop
            yield from written

    def _of_steps(self, equations: Sequence[DerivedEquation]) -> Iterator[Line | Paragraph]:
        """What every step computes, and then each of them with its numbers."""
        for each in equations:
            yield from self._written(each, plain=True)
        for step, group in groupby(equations, key=lambda each: each.step):
            if step is not None:
                yield Paragraph((step, ":"))
            for each in group:
                if each.here is not None and not each.here.says_nothing:
                    anchor = f"{self.anchor(each)}-{len(self._steps)}"
                    self._steps[id(each)] = anchor
                    yield Line(with_numbers(each.here), anchor=anchor)

    def _written(self, equation: DerivedEquation, *, plain: bool) -> Iterator[Line | Paragraph]:
        """One equation, or where it stands already; `plain` without its numbers."""
        if equation.says_nothing and (plain or equation.left in self.known):
            return
        stated = _stated(equation)
        number = self._numbered.get(stated)
        formula = stated if plain else with_numbers(equation)
        if number is not None and not equation.again:
            again = f" {self.say('again')} "
            yield Paragraph((equation.left, again, Link(f"({number})", f"#eq-{number}"), "."))
        elif not equation.again:
            boxed = equation.name in self._results
            yield replace(self.line(formula, equation.shape), boxed=boxed)
            self._numbered[stated] = str(self._count)
            self.known.add(equation.left)
        elif not plain:
            yield Line(formula, "", equation.shape)

    def states(self, equation: DerivedEquation) -> bool:
        """True for an equation that has its number."""
        return _stated(equation) in self._numbered

    def anchor(self, equation: DerivedEquation) -> str:
        """Where an equation stands on the page, that of a step where it has its numbers."""
        if id(equation) in self._steps:
            return self._steps[id(equation)]
        number = self._numbered.get(_stated(equation))
        return "" if number is None else f"eq-{number}"

    def line(self, formula: Formula, shape: Formula | None = None) -> Line:
        self._count += 1
        return Line(formula, str(self._count), shape)


def _stated(equation: DerivedEquation) -> Formula:
    return row(equation.left, Sign(_sign(equation)), equation.right)


def _sign(equation: DerivedEquation) -> str:
    return "←" if equation.updates else "="


def with_numbers(equation: DerivedEquation) -> Formula:
    """name = formula = the formula with its numbers = the matrix, a line for each."""
    right = [] if equation.says_nothing else [equation.right]
    if equation.figures is not None:
        right.append(equation.figures)
    signs = iter((_sign(equation), *("=" for _ in equation.parts), "=", "="))
    slices: list[tuple[Formula, Formula]] = []
    for name, value in equation.parts:
        written = matrix(without_leading(value), name=indexable(name))
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
    written = matrix(without_leading(value), name=indexable(symbol))
    return written if isinstance(written, Lines) else equals(symbol, written)


def updated_line(
    left: Formula, rule: Formula | None, old: Any, step: tuple[float, Any], new: Any
) -> Formula:
    """W ← W − η ∂L/∂W with its numbers, and what comes out; without a rule only this.

    `rule` is the right side, `step` η and ∂L/∂W.
    """
    drawn = matrix(without_leading(new), name=indexable(left))
    if rule is None:
        return drawn if isinstance(drawn, Lines) else row(left, Sign("←"), drawn)
    if isinstance(drawn, Lines):
        return Lines(((left, rule), *drawn.rows))
    rate, gradient = step
    before, slope = (matrix(without_leading(each)) for each in (old, gradient))
    figures = row(before, Sign("−"), number(rate), slope)
    return Lines(((left, rule), *((_NOTHING, row(Sign("="), each)) for each in (figures, drawn))))


def without_leading(value: Any) -> Any:
    """An image of one example and one channel is a matrix."""
    value = np.asarray(value)
    return value.reshape(value.shape[-2:]) if set(value.shape[:-2]) == {1} else value


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
    if meaning.definition is not None and sizes.lengths:
        return meaning.definition
    return number(value)


def indexable(symbol: Formula) -> Formula:
    """A symbol that can take an index."""
    return symbol if isinstance(symbol, Symbol | Script) else Fenced(symbol)
