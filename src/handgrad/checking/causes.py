"""The faults behind wrong gradients, from what was computed beside what should have been."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.beside import joined
from handgrad.checking.alignment.told import Told
from handgrad.checking.alignment.told import faults as changed
from handgrad.checking.alignment.watched import WatchedTarget, watched
from handgrad.checking.attempts import attempt
from handgrad.checking.contents import guard_of
from handgrad.checking.diagnosis import diagnose
from handgrad.checking.hypotheses import Draw
from handgrad.checking.report import NO_CAUSE, Fault
from handgrad.checking.sample_inputs import Setup
from handgrad.checking.subject import CheckedTarget
from handgrad.checking.trial import TrialRun, close, like_nested, numeric_gradient, run, size_known
from handgrad.checking.work import Work
from handgrad.forward_backward import ForwardBackward

#: Elements of a gradient that are computed one by one where no formula is at hand.
_ELEMENTS: Final = 2000
#: Seconds of work on hypotheses about one input, beside that on changes of the source.
_HYPOTHESES: Final = 4.0
#: The part of a gradient by which a guard against a division by 0 may move it: so many times the
#: guard, and so much at most.
_GUARDS: Final = 100.0
_EXCUSED: Final = 1e-5


def causes(
    subject: CheckedTarget,
    functions: ForwardBackward,
    done: TrialRun,
    wrong: tuple[str, ...],
    setup: Setup,
    rng: np.random.Generator,
    work: Work,
    malformed: Sequence[Fault] = (),
    *,
    compared: bool,
) -> list[Fault]:
    """The faults behind wrong gradients, from this draw and one with another cotangent.

    Where no change is known and there is another reading of the functions, its faults.

    `malformed`: faults of gradients that cannot be compared, such as NaN; a change that gives them
    what differences say is told with them, but for None, which is left out rather than computed.
    `compared`: the subject's op says what is right; otherwise differences do.
    """
    names = (fault.gradient for fault in malformed)
    formless = tuple(name for name in names if done.gradients[name] is not None)
    second = run(functions, done.arrays, rng)
    # A target that cannot be put back is run as it is alone.
    seen = None if subject.is_ops_own else watched(functions, done)
    with functions.context():
        every, runs = wrong + formless, (done, second)
        draws = draws_of(subject, functions, runs, every, setup, rng, seen, compared=compared)
        faults = [*malformed, *diagnose(wrong, draws, setup.situation, Work(_HYPOTHESES))]
        if seen is not None:
            (own,) = rng.spawn(1)  # so that inputs of later situations stay those of the seed
            none = list[Told]()
            searched = (draws, runs, every, own, setup.situation, work)
            changes = attempt(partial(changed, seen, *searched), none)
            faults = joined(faults, changes)
    faults = [_withheld(functions, each) for each in faults]
    found = [attempt(partial(_not_linear, functions, done, each, rng), each) for each in faults]
    for rival in functions.rivals if not any(map(_is_edit, found)) else ():
        other = run(rival, done.arrays, rng), wrong, setup, rng, work, malformed
        told = causes(subject, rival, *other, compared=compared)
        if any(map(_is_edit, told)) or not any(fault.diff for fault in found):
            found = told if any(fault.diff for fault in told) else found
    return found


def _is_edit(fault: Fault) -> bool:
    """Return whether a change is known that leaves most of a line as it is."""
    return bool(fault.diff) and fault.kind != "other expression"


def _withheld(functions: ForwardBackward, fault: Fault) -> Fault:
    """A wrong gradient whose backward was given something else for what it asks for."""
    if not functions.withheld or (fault.kind != "unknown" and fault.confidence == 1.0):
        return fault
    message = f"d{fault.gradient}: {'; '.join(functions.withheld)}"
    return replace(fault, kind="not returned", term="", message=message, confidence=0.9)


def _not_linear(
    functions: ForwardBackward, done: TrialRun, fault: Fault, rng: np.random.Generator
) -> Fault:
    """An unexplained gradient that does not turn with dy: it depends on dy in another way."""
    if fault.kind != "unknown":
        return fault
    name = fault.gradient
    turned = run(functions, done.arrays, rng, dy=like_nested(done.dy, np.negative))
    if close(turned.gradients[name], -np.asarray(done.gradients[name]), done.dy):
        return fault
    _, semicolon, line = fault.message.partition(f"{NO_CAUSE}; ")
    message = f"d{name}: is not linear in dy: for −dy it is not −d{name}{semicolon and '; '}{line}"
    return replace(fault, kind="not linear", message=message, confidence=0.9)


def draws_of(
    subject: CheckedTarget,
    functions: ForwardBackward,
    runs: tuple[TrialRun, ...],
    wrong: tuple[str, ...],
    setup: Setup,
    rng: np.random.Generator,
    seen: WatchedTarget | None,
    *,
    compared: bool,
) -> tuple[Draw, ...]:
    """The gradients found and right.

    Right are the op's own, those of a derivation that differences bear out, or differences.
    """
    rights: list[dict[str, Any]] = []
    tolerances: list[dict[str, float]] = []
    excused = min(_EXCUSED, _GUARDS * guard_of(subject.target))
    for done in runs:
        if compared:
            right = subject.right(functions, done, setup)
            allowed = {name: 1e-12 * size_known(right[name]) for name in right}
        else:
            numeric = {name: _right(functions, seen, done, name, rng) for name in wrong}
            right = {name: gradient for name, (gradient, _) in numeric.items()}
            allowed = {
                name: max(bound, excused * size_known(gradient))
                for name, (gradient, bound) in numeric.items()
            }
        rights.append(right)
        tolerances.append(allowed)
    return tuple(
        Draw(
            done.arrays,
            done.y,
            done.dy,
            {name: done.gradients[name] for name in functions.gradients},
            right,
            allowed,
        )
        for done, right, allowed in zip(runs, rights, tolerances, strict=True)
    )


def _right(
    functions: ForwardBackward,
    seen: WatchedTarget | None,
    done: TrialRun,
    name: str,
    rng: np.random.Generator,
) -> tuple[np.ndarray, float]:
    """The right gradient and a bound of its error: derived, or element by element."""
    (own,) = rng.spawn(1)
    none: tuple[np.ndarray, float] | None = None
    derived = None if seen is None else attempt(partial(seen.gradient, done, name, own), none)
    if derived is not None:
        return derived
    return numeric_gradient(functions, done, name, _ELEMENTS, rng)
