"""The fault that comes first as a backward runs, where others behind it hide what it does.

Where several faults meet in every gradient, as those of a loop do, no change of one line puts any
right. In the order of the run the first still stands out: the values before it are right ones, and
with the right change of it so are those after it, up to the next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from handgrad.checking.alignment.borrowing import Borrowed
from handgrad.checking.alignment.changes import Change, Place
from handgrad.checking.alignment.generators import within
from handgrad.checking.alignment.hits import Hit
from handgrad.checking.alignment.interventions import Interventions
from handgrad.checking.alignment.lines import LineValues
from handgrad.checking.alignment.paths import same
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.size import size_of
from handgrad.checking.alignment.slots import LineSlot, slots
from handgrad.checking.alignment.written import written
from handgrad.checking.attempts import attempted
from handgrad.checking.work import CHANGE, EXPRESSION

#: Lines that depart, in the order of the run, of which changes are tried.
_LINES: Final = 3
#: Words of a change that is tried, and changes of a line that make right values.
_WORDS: Final = 5.0
_MOST: Final = 24


class _Round(NamedTuple):
    """A line in the round in which it first departs, on each draw, and when that is."""

    slots: list[LineSlot]
    time: int


def first_faults(interventions: Interventions, borrowed: Borrowed) -> Iterator[Hit]:
    """Changes of the lines that depart first by which more of what follows is right, best first."""
    found: list[tuple[int, float, Hit]] = []
    known: dict[ast.AST, list[str]] = {}
    for begun in _departing(interventions):
        slot = begun.slots[0]
        own = within(slot.place, slot.statement, slot.scope, borrowed)
        sized = [(size_of(change, known), change) for change in attempted(own)]
        interventions.trials.work.take(CHANGE * len(sized))
        ordered = (each for each in sorted(sized, key=_size) if each[0] <= _WORDS)
        making = (each for each in ordered if _makes_right(each[1], begun, interventions))
        for size, change in islice(making, _MOST):
            time = _first(interventions, change, slot.piece)
            if time > begun.time:
                meant = _where_it_is_set(change, slot, interventions, borrowed, time) or change
                text = written(meant, slot.piece)
                found.append((-time, size, Hit(meant, slot.piece, (), text, size, size)))
    yield from (hit for _, _, hit in sorted(found, key=lambda each: each[:2]))


def _size(each: tuple[float, Change]) -> float:
    return each[0]


def _departing(interventions: Interventions) -> Iterator[_Round]:
    """The lines that depart, as they first do."""
    drawn = [interventions.lines(draw) for draw in (0, 1)]
    of = {slot.statement: slot for piece in interventions.pieces for slot in slots(piece, drawn[0])}
    has = interventions.derivations[0].pool.has
    departs: dict[ast.stmt, int] = {}
    for time, (statement, array) in enumerate(drawn[0].made):
        if statement in of and statement not in departs and has(array) is False:
            departs[statement] = time
    for statement, time in islice(departs.items(), _LINES):
        number = sum(each is statement for each, _ in drawn[0].made[:time])
        begun = (
            of[statement].at(lines.names[statement][number], lines.results[statement][number])
            for lines in drawn
            if number < len(lines.names[statement])
        )
        rounds = [each for each in begun if each is not None]
        if len(rounds) == len(drawn):
            yield _Round(rounds, time)


def _where_it_is_set(
    change: Change, slot: LineSlot, interventions: Interventions, borrowed: Borrowed, time: int
) -> Change | None:
    """The same change of a variable in the one line that sets it; None where it is another's."""
    own = change.place.get()
    match change.new:
        case ast.BinOp(ast.Name(name), op, right) if ast.unparse(own) == name:
            pass
        case _:
            return None
    lines = [
        each
        for each in ast.walk(slot.scope.function)
        if isinstance(each, ast.Assign) and any(map(partial(_is_name, name), each.targets))
    ]
    if len(lines) != 1 or len(lines[0].targets) != 1:
        return None
    place = Place(lines[0], "value")
    new = ast.unparse(ast.BinOp(lines[0].value, op, right))
    there = within(place, lines[0], slot.scope, borrowed)
    same_there = (each for each in attempted(there) if each.place == place)
    moved = next((each for each in same_there if ast.unparse(each.new) == new), None)
    if moved is None or _first(interventions, moved, slot.piece) != time:
        return None
    return moved


def _is_name(name: str, target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _makes_right(change: Change, begun: _Round, interventions: Interventions) -> bool:
    """Return whether a change of a line makes a right value of it that no variable has."""
    first, second = begun.slots
    interventions.trials.work.take(2 * EXPRESSION, elements=first.value.size)
    if interventions.trials.work.over():
        return False
    with change.made():
        made = [first.made(), second.made()]
    if any(each is None or each.shape != first.value.shape for each in made):
        return False
    one, other = interventions.derivations[:2]
    if not one.pool.has(made[0]) or any(_equal(made[0], each) for _, each in first.scope.atoms):
        return False
    return any(
        same(one.value(right), made[0]) and same(other.value(other.rights[right.number]), made[1])
        for right in one.rights
        if np.shape(one.value(right)) == first.value.shape
    )


def _equal(one: np.ndarray | None, other: np.ndarray) -> bool:
    return (
        one is not None
        and one.shape == other.shape
        and other.dtype.kind == "f"
        and same(one, other)
    )


def _first(interventions: Interventions, change: Change, piece: CodePiece) -> int:
    """The time at which a line first departs with a change in force; -1 where it raises."""
    try:
        with change.made():
            code = piece.compiled()
        with piece.in_force(code):
            lines: LineValues = interventions.lines(0)
    except Exception:  # it runs no more
        return -1
    has = interventions.derivations[0].pool.has
    departs = (i for i, (_, array) in enumerate(lines.made) if has(array) is False)
    return next(departs, len(lines.made))
