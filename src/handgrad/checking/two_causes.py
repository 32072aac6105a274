"""Two faults in one gradient: pairs of changes, where no single change explains the numbers.

The second change is another edit, or a number with a name that the whole is multiplied by. Pairs
are many, so only the simplest edits that concern the gradient are paired, and no more of them than
a bounded amount of work allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice
from typing import Any, Final

import numpy as np

from handgrad.checking.attempts import Inapplicable
from handgrad.checking.diagnosis import EditedBackward, best_fault, sides_of
from handgrad.checking.hypotheses import Draw, Explanation, whole_factor
from handgrad.checking.report import Fault

#: Nodes that the pairs of one gradient may compute again, and the edits that are to be paired as
#: many: each about a second's work.
_WORK: Final = 50_000
#: Edits that are looked at, and those of them that are paired with each other: 40 make 780 pairs.
_LOOKED_AT: Final = 200
_PAIRED: Final = 40
#: Kinds of edits that change so much that a pair with one of them would explain too much.
_CONTRIVED: Final = frozenset({"function missing", "scale inverted", "stale variable"})
#: A factor of the whole costs less than this where its number has a name. Any other number would
#: explain too much.
_NAMED: Final = 2.0


def two_causes(
    faults: list[Fault],
    wrong: tuple[str, ...],
    draws: tuple[Draw, ...],
    gradients: tuple[str, ...],
    end: float = math.inf,
) -> list[Fault]:
    """The faults; one that is unknown has two causes where a pair of changes explains it."""
    sides = sides_of(wrong, draws, gradients)
    return [
        _explained(each, sides, draws, end) if each.kind == "unknown" else each for each in faults
    ]


def _explained(
    fault: Fault, sides: list[EditedBackward], draws: tuple[Draw, ...], end: float
) -> Fault:
    name = fault.gradient
    sources = (_pairs(side, name, draws[0]) for side in sides)
    found = best_fault(name, sources, draws, fault.situation, end)
    return fault if found.kind in ("unknown", "wrong shape") else found


def _pairs(side: EditedBackward, name: str, draw: Draw) -> Iterator[Explanation]:
    """An edit with a factor of the whole, and two edits."""
    assert side.run is not None
    if side.position(name) >= len(side.run.program.results):
        return
    usual = [i for i, each in enumerate(side.edits) if each.kind not in _CONTRIVED]
    numbers = sorted(usual, key=lambda i: side.by_edits(name, i).cost)
    room = _WORK // max(len(side.run.program.nodes), 1)
    own = side.own(name)
    concerned = []
    for number in numbers[: min(_LOOKED_AT, room)]:
        single = side.by_edits(name, number)
        value = _predicted(single, draw)
        if value is None or not np.array_equal(value, own):
            concerned.append(number)
        if value is not None:
            yield from _with_factor(single, value, side, name, draw)
    pairs = combinations(concerned[:_PAIRED], 2)
    apart = ((i, j) for i, j in pairs if _are_apart(side, i, j))
    yield from (side.by_edits(name, i, j) for i, j in islice(apart, room))


def _predicted(single: Explanation, draw: Draw) -> np.ndarray | None:
    """The gradient with one edit made; None where it raises, which two edits may not, and where it
    is no array of numbers, such as several that were meant for several inputs.
    """
    try:
        value = np.asarray(single.predict(draw))
    except Inapplicable:
        return None
    return None if value.dtype == object else value


def _are_apart(side: EditedBackward, i: int, j: int) -> bool:
    """Return whether two edits can be made together: of different operations, and no exchange."""
    one, other = side.edits[i], side.edits[j]
    return not (one.swapped or other.swapped or one.changes.keys() & other.changes.keys())


def _with_factor(
    single: Explanation, value: np.ndarray, side: EditedBackward, name: str, draw: Draw
) -> Iterator[Explanation]:
    """An edit, and a number by which all that it gives differs from what is looked for."""
    goal = np.asarray(draw.right[name] if side.repairs else draw.found[name])
    known = np.isfinite(goal)
    if value.shape != goal.shape or not np.isfinite(value[known]).all():
        return
    if not np.any(value[known]) or not np.any(goal[known]):
        return
    found, right = (value, goal) if side.repairs else (goal, value)
    factor, (kind, term, phrase, cost) = whole_factor(name, draw, found, right)
    if cost > _NAMED:
        return

    def predict(d: Draw) -> Any:
        edited = single.predict(d)
        return edited / factor if side.repairs else factor * edited

    yield replace(
        single,
        kind=kind if kind == single.kind else "two causes",
        term=f"{single.term} and {term}" if term else single.term,
        phrase=f"{single.phrase}, and what it gives {phrase}",
        cost=single.cost + cost,
        predict=predict,
    )
