"""A backward that raises, or gives back another number of gradients: what makes it run, and right.

There is nothing to compare, but what is right is known: forward runs, and so do its differences.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from handgrad.checking.alignment.raised import meant_to_be
from handgrad.checking.alignment.search import SourceSearch
from handgrad.checking.alignment.told import Told, told_by
from handgrad.checking.alignment.watched import WatchedTarget
from handgrad.checking.causes import draws_of
from handgrad.checking.report import Fault
from handgrad.checking.sample_inputs import Setup
from handgrad.checking.subject import CheckedTarget
from handgrad.checking.trial import Arrays, TrialFault, TrialRun, forward, random_like
from handgrad.checking.work import Work
from handgrad.forward_backward import ForwardBackward


def explained(
    subject: CheckedTarget,
    functions: ForwardBackward,
    arrays: Arrays,
    found: TrialFault,
    setup: Setup,
    rng: np.random.Generator,
    work: Work,
) -> list[Fault]:
    """The fault with each change of the source by which backward runs and gradients are right.

    Where there is none, with the shape of what the line that raised is to make.
    """
    if not found.fault.message.startswith("backward") or subject.is_ops_own:
        return [found.fault]
    (own,) = rng.spawn(1)
    runs = (_without_gradients(functions, arrays, own), _without_gradients(functions, arrays, own))
    wrong = functions.gradients
    with functions.context():
        seen = WatchedTarget(functions, runs[0])
        draws = draws_of(subject, functions, runs, wrong, setup, own, seen, compared=False)
        search = SourceSearch(seen, draws, runs, wrong, own, work, raised=found)
        if isinstance(search.raising, ast.Raise | ast.Assert):
            return [found.fault]  # it says itself what is wrong
        changed = told_by(search, setup.situation)
    told = {(each.fault.line, each.fault.diff): each for each in changed if each.fault.diff}
    fault = found.fault
    if told:
        return [_with_change(fault, each) for each in told.values()]
    meant, line, standing = "", search.raising, search.standing
    if line is not None and standing is not None:
        meant = meant_to_be(line, standing.derived)
    message = f"{fault.message}; {meant}" if meant else fault.message
    return [replace(fault, message=message, line=line.lineno if line is not None else 0)]


def _without_gradients(
    functions: ForwardBackward, arrays: Arrays, rng: np.random.Generator
) -> TrialRun:
    """A run of forward, with gradients of which nothing is known."""
    y, cache = forward(functions, arrays)
    nothing = {name: np.full(np.shape(arrays[name]), np.nan) for name in functions.gradients}
    return TrialRun(arrays, y, cache, random_like(y, rng), nothing)


def _with_change(fault: Fault, told: Told) -> Fault:
    change = told.fault
    phrase = change.message.removeprefix(f"d{change.gradient}: ")
    if f"(line {change.line} of" in fault.message or f"(line {change.line})" in fault.message:
        phrase = phrase.replace(f" (line {change.line})", "")
    return replace(
        fault,
        message=f"{fault.message}; {phrase}",
        confidence=change.confidence,
        judged=True,
        line=change.line,
        diff=change.diff,
    )
