"""Lists that a loop inside an expression made: one element with the loop's variables as index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from handgrad.documents.formulas.formula import (
    Big,
    Fenced,
    Formula,
    Number,
    Operator,
    Script,
    Sign,
    row,
    separated,
)
from handgrad.equations.parts import BIG, SUM, UNARY, Part
from handgrad.equations.shaping import Subscripts, shape
from handgrad.equations.shaping import stacked as stacked_arrays
from handgrad.equations.writes import Writes
from handgrad.program import Node

if TYPE_CHECKING:
    from handgrad.equations.scope import Scope


def is_family(scope: Scope, items: Any) -> bool:
    """True where a list's elements are made by rounds of one loop, all alike, and not of steps."""
    if not isinstance(items, list | tuple) or not items:
        return False
    if not all(isinstance(each, Node) and each.rounds for each in items):
        return False
    first = items[0]
    return scope.round_of(first) is None and all(
        (each.site, each.op, each.rounds[-1].loop) == (first.site, first.op, first.rounds[-1].loop)
        and each.rounds[-1].number == i
        for i, each in enumerate(items)
    )


def index_of(scope: Scope, items: Any) -> Formula | None:
    """The index of the elements: the variables of the loop, or those of another list."""
    return _index(scope, items[0], numbers=False)


def number_of(scope: Scope, item: Node) -> Formula | None:
    """The same of one element, as numbers."""
    return _index(scope, item, numbers=True)


def _index(scope: Scope, item: Node, *, numbers: bool) -> Formula | None:
    counters = scope.runs.counters.get((item.frame, item.rounds), [])
    parts: list[Formula] = []
    for each in counters:
        if each.name == "_":
            continue
        if numbers:
            values = each.value if isinstance(each.value, tuple) else (each.value,)
            parts += [Number(str(int(value))) for value in values]
        else:
            parts.append(scope.glossary.symbol(each.name))
    if parts:
        return separated(tuple(parts))
    waiting = list(item.operands)
    while waiting:
        node = waiting.pop(0)
        if node in scope.elements:
            return scope.numbers[node] if numbers else scope.elements[node]
        if node.rounds == item.rounds:
            waiting += node.operands
    return None


def total(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """Python's own sum, over a loop or over a list that a loop made."""
    items = node.args[0]
    if not is_family(writer.scope, items):
        parts: list[Formula] = []
        for each in items:
            parts += [Sign("+")] if parts else []
            parts.append(writer.write(each, BIG, subscripts))
        return Part(row(*parts), SUM)
    below, above = index_of(writer.scope, items), None
    ends = writer.scope.runs.ranges.get(items[0].rounds[-1].loop)
    if ends is not None and below is not None and not writer.has_symbol(items[0]):
        below = row(below, Sign("="), Number("0"))
        above = row(writer.write(ends[1], SUM), Sign("−"), Number("1"))
    return Part(Big("sum", writer.write(items[0], BIG, subscripts), below, above), BIG)


def stacked(writer: Writes, items: Any) -> Part | None:
    """(V_τ)_τ"""
    if not is_family(writer.scope, items):
        return None
    index = index_of(writer.scope, items)
    return Part(Script(Fenced(writer.write(items[0])), index), UNARY)


def reduced(writer: Writes, node: Node, axes: tuple[int, ...]) -> Part | None:
    """A maximum along the axis on which a loop's arrays were stacked: max_τ V_τ."""
    found = _stacked_family(writer, node.args[0])
    if found is None:
        return None
    items, axis = found
    if axes != (axis + len(shape(writer.bare(node.args[0]))),):
        return None
    return Part(Big(node.op, writer.write(items[0], BIG), index_of(writer.scope, items)), BIG)


def arg_max(writer: Writes, node: Node) -> Part | None:
    found = _stacked_family(writer, node.args[0])
    if found is None:
        return None
    items, _ = found
    largest = Big("max", writer.write(items[0], BIG), index_of(writer.scope, items))
    return Part(row(Operator("arg"), largest), BIG)


def _stacked_family(writer: Writes, value: Any) -> tuple[Any, int] | None:
    inner = writer.bare(value)
    found = None if writer.has_symbol(inner) else stacked_arrays(inner)
    return found if found is not None and is_family(writer.scope, found[0]) else None
