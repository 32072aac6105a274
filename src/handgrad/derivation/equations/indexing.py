"""Parts of arrays: x_t, a size by its letter, a slice as the code writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handgrad.derivation.equations.marks import Marks, marked
from handgrad.derivation.equations.parts import ATOM, UNARY, Part, subscripted
from handgrad.derivation.equations.places import moved
from handgrad.derivation.formulas.formula import Formula, Number, Sign, Text, row, separated
from handgrad.trees import nodes
from handgrad.trees.nodes import Node

if TYPE_CHECKING:
    from handgrad.derivation.equations.expression import Writer

_WHOLE = nodes.Slice(None, None, None)


def indexed(writer: Writer, node: nodes.Index, marks: Marks) -> Part:
    """x_t, or a size of an array by its letter."""
    found = writer.value(node)
    if isinstance(found, int) and not hasattr(found, "shape"):
        return size(writer, node)
    positions = _positions(node.index)
    step = _step_of_list(writer, node.value, positions, marks)
    if step is not None:
        return step
    own = _marks_of_whole(writer, node, positions, marks)
    if own is not None:
        return writer.part(node.value, own)
    while positions and isinstance(positions[0], nodes.Constant) and positions[0].value is ...:
        positions = positions[1:]
    below = separated(tuple(position(writer, each) for each in positions))
    return subscripted(writer.part(node.value), below)


def _positions(index: Node) -> tuple[Node, ...]:
    return index.items if isinstance(index, nodes.Sequence) else (index,)


def _step_of_list(
    writer: Writer, value: Node, positions: tuple[Node, ...], marks: Marks
) -> Part | None:
    """h_t, an element of a list that a loop over the steps has filled."""
    match value, positions:
        case nodes.Name(name), (single,) if name in writer.frame.sequences and isinstance(
            writer.value(value), list | tuple
        ):
            place = place_of(writer, single) or _fixed(writer, single, len(writer.value(value)))
            return None if place is None else writer.step(name, place, marked(marks))
    return None


def _marks_of_whole(
    writer: Writer, node: nodes.Index, positions: tuple[Node, ...], marks: Marks
) -> Marks | None:
    """The marks of the whole array where the index only says which step is meant."""
    missing = len(writer.shape(node.value)) - sum(not _is_new(each) for each in positions)
    every: list[Node] = []
    for each in positions:
        if each == nodes.Constant(...):
            every += [_WHOLE] * (missing + 1)
        else:
            every.append(each)
    every += [_WHOLE] * (len(writer.shape(node.value)) - sum(not _is_new(each) for each in every))
    outside = [*(None for _ in range(len(writer.shape(node)) - len(marks))), *marks]
    found: list[Formula | None] = []
    for each in every:
        match each:
            case nodes.Slice(lower, _, None):
                mark = outside.pop(0) if outside else None
                start = 0 if lower is None else writer.value(lower)
                if each != _WHOLE and (mark is None or not isinstance(start, int) or start < 0):
                    return None
                found.append(mark if mark is None or each == _WHOLE else moved(mark, start))
            case _ if _is_new(each):
                if outside:
                    outside.pop(0)
            case _:
                axis = len(found) - len(writer.shape(node.value))
                place = place_of(writer, each)
                if place is None and writer.has_steps(node.value, axis):
                    place = _fixed(writer, each, writer.shape(node.value)[axis])
                if place is None:
                    return None
                found.append(place)
    return tuple(found)


def _is_new(position: Node) -> bool:
    return position == nodes.Constant(None)


def place_of(writer: Writer, node: Node) -> Formula | None:
    """The step that an index says, counted from 1: that of a loop, or so many before or after."""
    match node:
        case nodes.Name(name) if name in writer.frame.counters:
            return writer.frame.counters[name]
        case nodes.Sum((nodes.Term(_, nodes.Name(name)), nodes.Term(sign, nodes.Constant(by)))) if (
            name in writer.frame.counters and isinstance(by, int)
        ):
            return moved(writer.frame.counters[name], sign * by)
    return None


def _fixed(writer: Writer, node: Node, size: int) -> Formula | None:
    """The step that a number says, counted from 1 where the code counts from 0 or from the end."""
    match node:
        case nodes.Constant(int() as place) if place >= 0:
            return Number(str(place + 1))
        case nodes.Constant(int() as place):
            return moved(writer.frame.dimensions.size(size), place + 1)
    return None


def position(writer: Writer, node: Node) -> Formula:
    """One part of an index: a number, a name, or a slice as the code writes it."""
    match node:
        case nodes.Slice(lower, upper, step):
            parts: list[Formula] = [Sign(":")]
            if lower is not None:
                parts.insert(0, _bound(writer, lower))
            if upper is not None:
                parts.append(_bound(writer, upper))
            if step is not None:
                parts += [Sign(":"), writer.write(step)]
            return row(*parts)
        case nodes.Constant(value) if value is None or value is ...:
            return Sign(":") if value is None else Sign("⋯")
    return writer.write(node)


def _bound(writer: Writer, node: Node) -> Formula:
    """Where a slice begins or ends: a size by its letters."""
    value = writer.value(node)
    if isinstance(node, nodes.Name) and isinstance(value, int) and node.id not in writer.bound:
        found = writer.frame.dimensions.size(value)
        if not isinstance(found, Number):
            return found
    return writer.write(node)


def size(writer: Writer, node: Node) -> Part:
    """A whole number by the letters of sizes."""
    value = writer.value(node)
    if isinstance(value, int):
        return Part(writer.frame.dimensions.size(value), UNARY)
    return Part(Text(type(node).__name__.lower()), ATOM)


def only_new_axes(index: Node) -> bool:
    return all(
        each in (_WHOLE, nodes.Constant(None), nodes.Constant(...)) for each in _positions(index)
    )
