"""Parts of arrays: x_t, a slice as the code writes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    Number,
    Script,
    Sign,
    row,
    separated,
)
from handgrad.equations.parts import ATOM, Part, subscripted
from handgrad.equations.places import moved
from handgrad.equations.scope import LoopPosition
from handgrad.equations.shaping import (
    Subscripts,
    number,
    positions,
    shape,
    subscript_of,
    whole_number,
)
from handgrad.equations.writes import Writes
from handgrad.program import Node
from handgrad.program.sizes import Size

_WHOLE = slice(None)


def indexed(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """x_t, or x with the index as it stands in the code."""
    value, index = node.args
    own = _subscripts_of_whole(writer, node, subscripts)
    if own is not None:
        return writer.part(value, own)
    every = list(places(writer, value, index))
    if all(each in (Sign(":"), Sign("⋯")) for each in every) and shape(node) == shape(value):
        return writer.part(value, subscripts)
    while every[:1] == [Sign("⋯")]:
        every.pop(0)
    below = separated(tuple(every))
    found, outer = subscripted(writer.part(value), below), subscript_of(subscripts)
    return found if outer is None else Part(Script(Fenced(found.formula), outer), ATOM)


def _subscripts_of_whole(writer: Writes, node: Node, subscripts: Subscripts) -> Subscripts | None:
    """The subscripts of the whole array where the index only says which step is meant."""
    value, index = node.args
    given = positions(index)
    missing = len(shape(value)) - sum(each is not None for each in given)
    every: list[Any] = []
    for each in given:
        every += [_WHOLE] * (missing + 1) if each is ... else [each]
    every += [_WHOLE] * (len(shape(value)) - sum(each is not None for each in every))
    outside = [*(None for _ in range(len(shape(node)) - len(subscripts))), *subscripts]
    found: list[Formula | None] = []
    for each in every:
        if each is None:
            if outside:
                outside.pop(0)
        elif isinstance(each, slice) and number(each.step) in (None, 1):
            subscript = outside.pop(0) if outside else None
            start = 0 if each.start is None else each.start
            if each != _WHOLE and (subscript is None or type(start) is not int or start < 0):
                return None
            found.append(
                subscript if subscript is None or each == _WHOLE else moved(subscript, start)
            )
        else:
            axis = len(found) - len(shape(value))
            place = place_of(writer, each)
            if place is None and has_steps(writer, value, axis):
                place = _fixed(writer, each, shape(value)[axis])
            if place is None:
                return None
            found.append(place)
    return tuple(found)


def has_steps(writer: Writes, value: Any, axis: int) -> bool:
    """True where an axis of the value is that of the steps of a sequence."""
    bare = writer.bare(value)
    axes = writer.scope.step_axes
    return axes.get(value) == axis or (
        shape(bare) == shape(value) and isinstance(bare, Node) and axes.get(bare) == axis
    )


def place_of(writer: Writes, value: Any) -> Formula | None:
    """The step that an index says, counted from 1: that of a loop, or so many before or after."""
    if not isinstance(value, Node) or writer.place is None:
        return None
    if value.op == "counter":
        found = writer.scope.round_of(value)
        if found is None or found[0] is not writer.place.steps:
            return None
        return moved(writer.place.step, found[1] - writer.place.counted)
    if value.op in ("add", "subtract"):
        left, right = value.args
        inner = place_of(writer, left)
        if inner is not None and type(right) is int:
            return moved(inner, right if value.op == "add" else -right)
    return None


def _fixed(writer: Writes, value: Any, size: Size) -> Formula | None:
    """The step that a number says, counted from 1 where the code counts from 0 or from the end."""
    if type(value) is not int:
        return None
    if value >= 0:
        return Number(str(value + 1))
    return moved(writer.scope.dimensions.size(size), value + 1)


def places(writer: Writes, value: Any, index: Any) -> Iterator[Formula]:
    """The parts of an index: a number, a name, or a slice from its first position to its last."""
    every, sizes, axis = positions(index), shape(value), 0
    for i, each in enumerate(every):
        if each is None or each is ...:
            yield Sign(":") if each is None else Sign("⋯")
            if each is ...:
                axis = len(sizes) - sum(other is not None for other in every[i + 1 :])
            continue
        if isinstance(each, slice):
            yield _span(writer, each, writer.scope.dimensions.size(sizes[axis]))
        else:
            yield writer.write(each)
        axis += 1


def _span(writer: Writes, each: slice, size: Formula) -> Formula:
    """A slice by its first and last position, counted from 0: 1⋯T − 1, and : for all of `size`.

    Of steps other than 1 the first two positions stand: (0, 2, ⋯), to the end if that is told.
    """
    step = 1 if each.step is None else number(each.step)
    backward = type(step) is int and step < 0
    ends: tuple[Formula, Formula] = Number("0"), moved(size, -1)
    first, last = ends[::-1] if backward else ends
    if each.start is not None:
        first = _end(writer, each.start, size)
    if each.stop is not None:
        last = moved(_end(writer, each.stop, size), 1 if backward else -1)
    if step == 1:
        return Sign(":") if (first, last) == ends else row(first, Sign("⋯"), last)
    told = [] if each.stop is None and not backward else [last]
    return Fenced(separated((first, moved(first, step), Sign("⋯"), *told)))


def _end(writer: Writes, value: Any, size: Formula) -> Formula:
    """An end of a slice, from the front."""
    if type(value) is int and value < 0:
        return moved(size, value)
    return bound(writer, value)


def bound(writer: Writes, value: Any) -> Formula:
    """The start or end of a slice: a size by its letters."""
    if isinstance(value, Node) and isinstance(value.value, int):
        found = writer.scope.dimensions.size(whole_number(value))
        if not isinstance(found, Number):
            return found
    return writer.write(value)


def at_steps(writer: Writes, items: Any, axis: int, subscripts: Subscripts) -> Part | None:
    """One step of arrays that were stacked in a loop, or None where there is no subscript on it."""
    place = subscripts[axis] if len(subscripts) >= -axis else None
    if place is None:
        return None
    found = generic(writer, items)
    if found is None:
        return None
    at = len(subscripts) + axis
    item, position_of_it = found
    steps, counted = writer.scope.round_of(item)  # type: ignore[misc]
    if items[-1] is not item and -1 < _counted(writer, items[-1]) < counted:
        return None
    front, rest = None, (*subscripts[:at], *subscripts[at + 1 :])
    if writer.has_symbol(item):
        front, rest = subscript_of(subscripts[:at]), subscripts[at + 1 :]
    # The item stands at `position_of_it`, counted from 0, and is to be the one at `place`.
    there = LoopPosition(steps, counted, moved(place, counted - position_of_it), front)
    return writer.at(there).part(item, rest)


def _counted(writer: Writes, item: Node) -> int:
    found = writer.scope.round_of(item)
    return -1 if found is None else found[1]


def generic(writer: Writes, items: Any) -> tuple[Node, int] | None:
    """An item that a loop over steps has made, of the rounds where all are alike, and its place."""
    made = [
        (each, i)
        for i, each in enumerate(items)
        if isinstance(each, Node) and writer.scope.round_of(each) is not None
    ]
    if not made or len(items) - len(made) > 1:
        return None
    if len({each.rounds for each, _ in made}) < len(made):
        return None
    return made[1] if len(made) > 1 else made[0]


def whole(writer: Writes, items: Any) -> Part:
    """All steps together, by the symbol of one without its index."""
    item, _ = generic(writer, items)  # type: ignore[misc]
    named = writer.scope.symbols.get(item)
    if named is None:
        return Part(Fenced(writer.write(item)), ATOM)
    writer.scope.use(item)
    return Part(writer.scope.glossary.symbol(named.name, named.primes), ATOM)
