"""Symbols in the columns of a drawing: which value each stands for, and what an equation takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from handgrad.documents.formulas.formula import (
    Formula,
    FormulaRow,
    Number,
    Script,
    Symbol,
    separated,
)
from handgrad.equations.derived import DerivedEquation
from handgrad.equations.exact import CONSTANT
from handgrad.equations.models.flow import Fork, Group, Node
from handgrad.equations.models.steps import OpCall
from handgrad.equations.models.symbols import (
    indices_of,
)

Line: TypeAlias = list[tuple[int, Node | Fork | Group]]
Told: TypeAlias = tuple[OpCall, DerivedEquation]


@dataclass
class OpenColumn:
    """Parts with the values that they take, from the value `start` to `end`."""

    start: int
    end: int
    line: Line = field(default_factory=list)


@dataclass
class DrawnScope:
    """Symbols by the numbers of their values, how a parameter is found among symbols, and the
    columns; `fresh` are values that may begin one, with what gives them."""

    known: dict[Formula, int]
    counter: Formula | None
    number: int
    columns: list[OpenColumn] = field(default_factory=list)
    fresh: dict[int, int | None] = field(default_factory=dict)
    #: The values that rounds of a loop hand on, by the value that the last gives.
    rounds: dict[int, set[Formula]] = field(default_factory=dict)

    def value(self, symbol: Formula) -> int | None:
        """The value that a symbol stands for, of which it may be a step."""
        return self.known.get(symbol, self.known.get(whole_of(symbol)))

    def taken(self, equations: Sequence[Told]) -> list[int]:
        """The values that go into equations, in their order."""
        symbols = dict.fromkeys(each for _, equation in equations for each in taken_by(equation))
        for end, several in self.rounds.items():
            if len(several.intersection(symbols)) > 1:
                symbols = {
                    each: None for each in symbols if each not in several or self.value(each) == end
                }
        found = (self.value(each) for each in symbols)
        return list(dict.fromkeys(each for each in found if each is not None))


NO_PART: Final = OpCall(())


def taken_by(equation: DerivedEquation) -> Iterator[Formula]:
    """The symbols that an equation takes, but for those of which it takes the shape alone."""
    if all(each.op in CONSTANT for each in equation.nodes):
        return iter(())
    return (each.symbol for each in equation.arrived)


def whole_of(symbol: Formula) -> Formula:
    """x for x_t, one step of it."""
    match symbol:
        case Script(base, sub, None) if sub is not None:
            *indices, last = indices_of(sub)
            if last == Symbol("t") or isinstance(last, FormulaRow):
                return Script(base, separated(tuple(indices))) if indices else base
    return symbol


def forms_of(symbol: Formula) -> set[Formula]:
    """A symbol, what it is a step of, and any step of that where it is a single one."""
    found = {symbol, whole_of(symbol)}
    match symbol:
        case Script(base, sub, None) if sub is not None:
            *indices, last = indices_of(sub)
            if isinstance(last, Number):
                found.add(Script(base, separated((*indices, Symbol("t")))))
    return found
