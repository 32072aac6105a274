"""Formulas of a page taken apart: their sides, terms and factors, and what a table says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from handgrad.documents.document import Block, Equation, Mono, Paragraph, Table
from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    FormulaRow,
    Number,
    Script,
    Sign,
    Symbol,
    parts_in,
    row,
)
from tests.equations.reading import RELATIONS, split


def is_moment(index: Formula, letters: set[Formula]) -> bool:
    parts = parts_of(index)
    signs = {Sign("+"), Sign("−")}
    known = all(each in letters or each in signs or isinstance(each, Number) for each in parts)
    return known and any(isinstance(each, Number) for each in parts)


def is_prime(sup: Formula | None) -> bool:
    return sup is not None and set(parts_of(sup)) == {Sign("′")}


def rounds_of(block: Block) -> tuple[Formula, Formula, Formula]:
    """The counter of a loop, its first value and its last."""
    assert isinstance(block, Paragraph)
    assert isinstance(block.content, tuple)
    _, counted, _ = block.content
    (counter, _, *rest) = parts_of(counted)
    ends = [row(*each) for _, each in split(rest, ",") if each != (Sign("⋯"),)]
    return counter, ends[0], ends[-1]


class Rounds(NamedTuple):
    """A loop as the page has it: its counter, the first and the last round, and their lines."""

    counter: Formula
    ends: tuple[Formula, Formula]
    lines: list[Equation | Rounds]


def is_loop(block: Block) -> bool:
    return isinstance(block, Paragraph) and "For " in block.content


def loop_of(block: Block, following: list[Block], around: tuple[Formula, ...] = ()) -> Rounds:
    """The loop that a paragraph begins, with the lines that follow and have its counter.

    A loop that comes next is inside if it counts by another letter than those around it.
    """
    counter, *ends = rounds_of(block)
    around = (*around, counter)
    lines: list[Equation | Rounds] = []
    while following:
        if is_loop(following[0]):
            if rounds_of(following[0])[0] in around:
                break
            lines.append(loop_of(following.pop(0), following, around))
        elif isinstance(line := following[0], Equation) and counter in parts_in(line.formula):
            lines.append(line)
            following.pop(0)
        else:
            break
    return Rounds(counter, (ends[0], ends[1]), lines)


def bare(symbol: Formula) -> Formula | None:
    """The symbol of which this is that of one round."""
    match symbol:
        case FormulaRow((Symbol("d") as d, of)):
            inside = bare(of)
            return None if inside is None else row(d, inside)
        case Script(base, _, None):
            return base
        case Script(base, sub, Fenced()):
            return base if sub is None else Script(base, sub)
    return None


def codes(blocks: Sequence[Block]) -> Iterator[tuple[str, Formula]]:
    for block in blocks:
        if isinstance(block, Table) and block.header == ("symbol", "in the code"):
            for symbol, name in block.rows:
                assert isinstance(name, Mono)
                yield name.text, symbol


def given(blocks: Sequence[Block]) -> list[Formula]:
    """The gradients that a backward begins with, where the page says so."""
    for block in blocks:
        match block:
            case Paragraph(("Given ", several, ":")):
                return [row(*each) for _, each in split(parts_of(several), ",")]
    return []


def sides(formula: Formula) -> tuple[Formula, Formula]:
    parts = parts_of(formula)
    place = parts.index(Sign("=")) if Sign("=") in parts else parts.index(Sign("←"))
    return row(*parts[:place]), row(*parts[place + 1 :])


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    if isinstance(formula, Fenced) and formula.left == "(":
        formula = formula.body
    return formula.parts if isinstance(formula, FormulaRow) else (formula,)


def is_relation(formula: Formula) -> bool:
    signs = {Sign(each) for each in (*RELATIONS, "∧", "∨")}
    return isinstance(formula, FormulaRow) and not signs.isdisjoint(formula.parts)
