"""Changes that put gradients right, told as faults."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from handgrad.checking.alignment.hits import Hit
from handgrad.checking.alignment.search import NEAR, SourceSearch
from handgrad.checking.alignment.watched import WatchedTarget
from handgrad.checking.attempts import attempt
from handgrad.checking.hypotheses import Draw
from handgrad.checking.report import RIVAL, Fault
from handgrad.checking.trial import TrialRun
from handgrad.checking.work import Work
from handgrad.program.text import symbol

#: Of a change that was run and has no rival: on other sizes another one may do the same.
_SURE: Final = 0.9
#: Of one that leaves other gradients wrong, which another change may put right together with it.
_IN_PART: Final = 0.5


@dataclass(frozen=True)
class Told:
    """A fault, and the number of words that its change changes."""

    fault: Fault
    words: float = 0.0


def faults(
    seen: WatchedTarget,
    draws: Sequence[Draw],
    runs: Sequence[TrialRun],
    wrong: Sequence[str],
    rng: np.random.Generator,
    situation: str,
    work: Work,
) -> list[Told]:
    """One fault for every gradient that a change of the user's source puts right."""
    search = SourceSearch(seen, draws, runs, wrong, rng, work)
    found = told_by(search, situation)
    rest = [name for name in wrong if all(name != told.fault.gradient for told in found)]
    lines = (_line(search, name, situation) for name in rest)
    return found + [line for line in lines if line is not None]


def told_by(search: SourceSearch, situation: str) -> list[Told]:
    """One fault for every gradient that a change which is found puts right."""
    told = search.faults()
    covered = {name for same in told for name in same[0].covers}
    sure = _SURE if covered == {*search.wrong} else _IN_PART
    return [_told(name, same, situation, sure) for same in told for name in same[0].covers]


def _told(name: str, same: Sequence[Hit], situation: str, sure: float) -> Told:
    near = [hit for hit in same if hit.size <= same[0].size + NEAR]
    return Told(_fault(name, near, situation, sure), same[0].words)


def _line(search: SourceSearch, name: str, situation: str) -> Told | None:
    """The line that a gradient departs in, where no change of it is known that puts it right.

    Of one that is all zeros that of the array that nothing is written into; of one that is not
    linear in dy that by which it is not.
    """
    nothing: ast.stmt | None = None
    no_line: tuple[ast.stmt, str] | None = None
    what = "nothing is written into the zeros of"
    statement = attempt(partial(search.unfilled, name), nothing)
    not_linear = partial(search.not_linear, name)
    if statement is None and (found := attempt(not_linear, no_line)) is not None:
        statement, what = found
    elif statement is None:
        what = "it would be right with the derivation's value of"
        statement = search.put_right.get(name)
    if statement is None:
        what = "the first value that the derived backward has not is made by"
        statement = attempt(partial(search.departing, name), nothing)
    if statement is None:
        return None
    text = ast.unparse(statement).split("\n")[0]
    message, line = f"{what} {text} (line {statement.lineno})", statement.lineno
    if (idle := attempt(search.idle, nothing)) is not None:
        message, line = f"{message}; line {idle.lineno} does nothing", idle.lineno
    return Told(Fault(name, "unknown", "", message, 0.0, situation, line=line))


def _fault(name: str, same: Sequence[Hit], situation: str, sure: float) -> Fault:
    best, *others = same
    change = best.change
    phrase = change.phrase.removeprefix(f"term {symbol('d' + name)} ")  # named before the colon
    message = f"d{name}: {phrase} (line {change.line})"
    here = (change.kind, change.line)
    rivals = [
        hit
        for hit in others
        if (hit.change.kind, hit.change.line) != here
        and (hit.written is None or hit.written != best.written)  # the same in other words
    ]
    if rivals:
        other = rivals[0].change
        message += f"{RIVAL}{other.phrase}, line {other.line})"
    places = {change.line, *(hit.change.line for hit in rivals)}
    return Fault(
        name,
        change.kind,
        change.part,
        message,
        sure / (len(places) + bool(rivals)),
        situation,
        tuple((hit.change.kind, hit.change.phrase) for hit in rivals[:1]),
        line=change.line,
        diff="" if best.written is None else best.written.diff,
    )
