"""`name += value` in rounds, for names that the loop changes by nothing else."""

from __future__ import annotations

import operator
from typing import Any

from handgrad.program.counted import CountedRun
from handgrad.program.integers import WholeNumber, is_whole, number_of, size_of
from handgrad.program.node import world
from handgrad.program.rounds import fixed
from handgrad.program.tracer import TracedInt


def stepped(sign: str, old: Any, value: Any) -> Any:
    """The name's new value; `sign` is a function of Python's module of operators."""
    w = world()
    result = getattr(operator, sign)
    if not w.open or not (_is_number(old) and _is_number(value)):
        return result(old, value)
    counts = sign.removeprefix("i") in ("add", "sub") and is_whole(old) and is_whole(value)
    if not counts:  # nobody knows it after the loop but by going through all rounds
        fixed(w.counts[w.open[-1][0]][0])
        return result(old, value)
    known = {run.number: run for run in (old.runs if issubclass(type(old), WholeNumber) else ())}
    runs: list[CountedRun] = []
    innermost = len(w.open) - 1
    for depth in range(innermost, -1, -1):
        number, i = w.open[depth]
        if number not in known and depth < innermost and i > 0:
            break  # set anew in each round of the loops around
        runs.insert(0, known.get(number) or CountedRun(depth, size_of(old)))
    size = result(size_of(old), size_of(value))
    new = TracedInt(result(number_of(old), number_of(value)), size, tuple(runs))
    for run in runs:
        run.note(new.value, size, new.runs)
    return new


def _is_number(x: Any) -> bool:
    """True for a number of Python's, traced or not; a truth is none."""
    kind = type(x)
    return issubclass(kind, int | float | WholeNumber) and kind is not bool
