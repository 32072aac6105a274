"""Run the checker on a bug of the corpus or its right sibling, and judge what it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.bug_corpus.case import Backward, Bug, Exercise, Forward
from handgrad.checking import CheckReport, Fault, check

#: The seed of the checker and of the inputs alike, as people write it.
SEED = 0


@dataclass(frozen=True)
class Outcome:
    """One bug as the checker saw it: with the op it is meant to be, or with inputs alone."""

    exercise: Exercise
    bug: Bug
    with_like: bool
    report: CheckReport

    @property
    def caught(self) -> bool:
        """True if it is reported, also as a remark: some of these bugs leave the gradient right."""
        return not self.report.ok or any(map(self._names_it, self.report.remarks))

    @property
    def reported(self) -> tuple[Fault, ...]:
        return (*self.report.faults, *self.report.remarks)

    @property
    def fault(self) -> Fault:
        """The fault that names the bug; if none does, the first."""
        return next(filter(self._names_it, self.reported), self.reported[0])

    @property
    def named(self) -> bool:
        """A wrong gradient is named with a kind and a term of the label, and no right one blamed.

        Only what is reported of the inputs on which the bug first shows counts for the blame: where
        those are the usual ones, a bug may spread from there.
        """
        if not self.caught or not any(map(self._names_it, self.reported)):
            return False
        first = self.reported[0].situation
        blamed = {each.gradient for each in self.report.faults if each.situation == first}
        return blamed <= {*self.bug.gradients, ""}

    def _names_it(self, fault: Fault) -> bool:
        if fault.gradient not in (self.bug.gradients or (fault.gradient,)):
            return False
        reported = [(fault.kind, f"{fault.term} {fault.message}"), *fault.alternatives]
        return any(
            kind in self.bug.kinds
            and (not self.bug.terms or any(term in text for term in self.bug.terms))
            for kind, text in reported
        )


def report_of(
    exercise: Exercise,
    backward: Backward,
    *,
    forward: Forward | None = None,
    with_like: bool = False,
) -> CheckReport:
    """The checker's report on a backward and its forward."""
    target = (forward or exercise.forward, backward)
    if with_like:
        return check(target, like=exercise.like, seed=SEED)
    inputs = exercise.inputs(np.random.default_rng(SEED))
    return check(target, *inputs, wrt=exercise.wrt, seed=SEED)


def outcomes(exercise: Exercise) -> Iterator[Outcome]:
    """Every bug of the exercise without `like`, and with it where it has one."""
    for with_like in (False, True) if exercise.like else (False,):
        for bug in exercise.bugs:
            report = report_of(exercise, bug.backward, forward=bug.forward, with_like=with_like)
            yield Outcome(exercise, bug, with_like, report)


def false_alarms(exercise: Exercise) -> Iterator[tuple[bool, Fault]]:
    """The faults that the checker finds in the right sibling."""
    for with_like in (False, True) if exercise.like else (False,):
        for fault in report_of(exercise, exercise.right, with_like=with_like).faults:
            yield with_like, fault
