"""Explanations of a wrong gradient by its numbers alone, tried until one reproduces them.

They say what became of the whole gradient, which a change of the source says better; for functions
without a source they are all there is. An explanation must hold on every draw; of those that do,
the simplest is reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain, takewhile
from typing import Any, Final

import numpy as np

from handgrad.checking.attempts import attempt, attempted
from handgrad.checking.element_hypotheses import of_elements
from handgrad.checking.hypotheses import Draw, Explanation, explains, general
from handgrad.checking.report import NO_CAUSE, RIVAL, Fault
from handgrad.checking.work import HYPOTHESIS, Work

#: Of the size of a gradient: what an explanation may leave unexplained.
_ROUNDING: Final = 1e-3
#: The same as a part of what is wrong.
_LEFT: Final = 0.1


def diagnose(
    wrong: tuple[str, ...], draws: tuple[Draw, ...], situation: str, work: Work
) -> list[Fault]:
    """One fault for every wrong gradient, as far as the work goes."""
    faults = []
    for name in wrong:
        sources = chain(attempted(general(name, draws)), attempted(of_elements(name, draws)))
        faults.append(best_fault(name, sources, draws, situation, work))
    return faults


def best_fault(
    name: str,
    sources: Iterable[Iterable[Explanation]],
    draws: tuple[Draw, ...],
    situation: str,
    work: Work,
) -> Fault:
    """The simplest explanation that holds, and how sure it is.

    Here alone explanations are tried: one that raises, or a source of them that does, is left out.
    """
    every = (each for source in attempted(sources) for each in attempted(source))
    elements = sum(map(np.size, draws[0].arrays.values()))
    candidates = takewhile(lambda _: not work.over(), every)
    holding: list[Explanation] = []
    for candidate in sorted(candidates, key=lambda each: each.cost):
        if (holding and candidate.cost > holding[0].cost + 0.5) or work.over():
            break
        work.take(HYPOTHESIS, elements=elements)
        if attempt(partial(_held, candidate, name, draws), False):
            holding.append(candidate)
    if not holding and np.shape(draws[0].found[name]) != draws[0].right[name].shape:
        shapes = np.shape(draws[0].found[name]), draws[0].right[name].shape
        message = f"d{name} has shape {shapes[0]}; allowed: {shapes[1]}, the shape of {name}"
        return Fault(name, "wrong shape", "", message, 1.0, situation)
    if not holding:
        error = _relative_error(draws[0], name)
        message = f"d{name}: wrong by {error:.2g} of its size; {NO_CAUSE}"
        return Fault(name, "unknown", "", message, 0.0, situation)
    best = holding[0]
    residual = max(_residual(draw, name, best.predict(draw)) for draw in draws)
    rivals = [
        each
        for each in holding[1:]
        if (each.kind, each.term.lstrip("−")) != (best.kind, best.term.lstrip("−"))
        and each.cost < best.cost + 0.3
    ]
    message = f"d{name}: {best.phrase}; residual {residual:.0e}"
    if rivals:
        message += f"{RIVAL}{rivals[0].phrase})"
    alternatives = tuple((each.kind, each.term) for each in rivals[:1])
    sure = 1.0 / (1 + len(rivals))
    return Fault(name, best.kind, best.term, message, sure, situation, alternatives)


def _held(candidate: Explanation, name: str, draws: tuple[Draw, ...]) -> bool:
    """Return whether an explanation holds.

    What is left by it has to be rounding, however little is known of what is right.
    """
    if not explains(candidate, name, draws):
        return False
    lefts = ((each, _residual(each, name, candidate.predict(each))) for each in draws)
    return all(left <= min(_ROUNDING, _LEFT * _relative_error(each, name)) for each, left in lefts)


def _relative_error(draw: Draw, name: str) -> float:
    found, right = np.asarray(draw.found[name]), draw.right[name]
    if found.shape != right.shape:
        return float("inf")
    size = np.nanmax(np.abs(right), initial=1e-300)
    return float(np.nanmax(np.abs(found - right), initial=0.0) / size)


def _residual(draw: Draw, name: str, predicted: Any) -> float:
    expected = np.asarray(draw.found[name])
    size = max(np.nanmax(np.abs(expected), initial=0.0), 1e-300)
    return float(np.nanmax(np.abs(predicted - expected), initial=0.0) / size)
