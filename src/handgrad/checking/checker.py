"""One check, from the usual inputs to the unusual: gathers rows, trials and faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from handgrad.checking import situations
from handgrad.checking.causes import causes
from handgrad.checking.diagnosis import explained_exception
from handgrad.checking.localisation import parts
from handgrad.checking.precision import bounds, precision_faults
from handgrad.checking.report import CheckReport, Fault, GradientRow, TrialRow
from handgrad.checking.situations import Setup
from handgrad.checking.stability import other_cotangents, repeated
from handgrad.checking.subject import Subject
from handgrad.checking.targets import is_op
from handgrad.checking.trial import (
    Run,
    TrialFault,
    close,
    directional_row,
    leaves,
    malformed,
    not_finite,
    random_like,
    run,
    same_outputs,
    size_of,
)
from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.pair import Pair


class Checker:
    """One check: gathers rows and faults while it goes from the usual inputs to the unusual."""

    def __init__(self, subject: Subject, seed: int, rng: np.random.Generator) -> None:
        self.subject = subject
        self.seed = seed
        self.rng = rng
        #: Gradients found wrong, or not fit to be judged: nothing more is said of them.
        self.settled: set[str] = set()
        self.rows: list[GradientRow] = []
        self.trials: list[TrialRow] = []
        self.faults: list[Fault] = []

    def report(self, setups: list[Setup]) -> CheckReport:
        usual, *others = setups
        if module := self.subject.meet(usual):
            others = situations.of_op(module, self.rng)
        pair, arrays = self.subject.pair(usual)
        if not pair.gradients:
            raise ArgumentError(
                f"check: {pair.name} has no input of floats; allowed: at least one of them"
            )
        try:
            self.usual(pair, arrays, usual)
        except TrialFault as found:
            self.faults.append(found.fault)
            self.trials.append(TrialRow("usual", "wrong", found.fault.kind))
        else:
            if isinstance(self.subject.target, Layer) and self.faults:
                self.faults = self.localised(usual) or self.faults
            if self.subject.op is None:
                others = list(situations.of_arrays(pair, arrays, usual.options, self.rng))
            for setup in others:
                self.another(setup)
        return CheckReport(
            pair.name,
            self.seed,
            pair.op,
            tuple(self.rows),
            tuple(self.trials),
            tuple(self.faults),
        )

    def localised(self, setup: Setup) -> list[Fault]:
        """The faults of the parts of a model that are wrong on their own, all children right."""
        found: list[Fault] = []
        culprits: list[str] = []
        inputs = list(setup.arrays.values())
        for name, layer, given, options in parts(self.subject.target, inputs, setup.options):
            if any(other.startswith(name + ".") for other in culprits):
                continue
            checker = Checker(Subject(layer), self.seed, self.rng)
            arrays = {str(i): array for i, array in enumerate(given)}
            inner_setup = Setup("usual", "", arrays, options, smooth=True)
            faults = checker.report([inner_setup]).faults
            if faults:
                culprits.append(name)
                kind = type(layer).__name__
                found += [
                    replace(
                        fault,
                        gradient=f"{name}.{fault.gradient}",
                        message=f"layer {name} ({kind}): {fault.message}",
                    )
                    for fault in faults
                ]
        return found

    # The usual inputs

    def usual(self, pair: Pair, arrays: dict[str, np.ndarray], setup: Setup) -> None:
        done = run(pair, arrays, self.rng)
        self.faults += not_finite(done)
        malformed_faults = malformed(pair, done)
        self.faults += malformed_faults
        broken = {fault.gradient for fault in malformed_faults}
        self.faults += self.subject.different_forward(pair, done, setup)
        self.gather(repeated(pair, done, [n for n in pair.gradients if n not in broken]))
        sound = [name for name in pair.gradients if name not in broken]
        self.rows += self.judged(pair, done, sound)
        wrong = tuple(row.gradient for row in self.rows if row.verdict == "wrong")
        wrong += self.elementwise_wrong(pair, done, setup, {*wrong, *broken})
        self.settled = {*wrong, *broken}
        if wrong:
            self.faults += self.causes(pair, done, wrong, setup)
        self.trials.append(TrialRow("usual", "wrong" if self.faults else "right", ""))
        if not self.faults:
            self.gather(other_cotangents(pair, done, self.rng))
            faults, rows = precision_faults(pair, arrays, self.rng)
            self.faults += faults
            self.rows += rows
            self.trials.append(TrialRow("float32", "wrong" if faults else "right", ""))

    def gather(self, findings: tuple[list[Fault], list[TrialRow]]) -> None:
        self.faults += findings[0]
        self.trials += findings[1]

    def judged(self, pair: Pair, done: Run, names: Sequence[str]) -> list[GradientRow]:
        """One row per gradient. Before one is called wrong, its own float64 rounding is counted."""
        rows = [directional_row(pair, done, name, self.rng) for name in names]
        if not any(row.verdict == "wrong" for row in rows):
            return rows
        try:
            counted, _ = bounds(pair, done.arrays, done.dy, 2.0**-53)
        except Exception:  # a stranger's function that does not stand being called so
            return rows
        rounding = dict(zip(pair.gradients, counted, strict=True))
        for name, known in rounding.items():
            # A count that explains everything, as where a comparison is in doubt, excuses nothing.
            if known is not None and size_of(known[1]) > 1e-6 * max(size_of(known[0]), 1e-6):
                rounding[name] = None
        return [
            directional_row(pair, done, row.gradient, self.rng, rounding[row.gradient])
            if row.verdict == "wrong"
            else row
            for row in rows
        ]

    def elementwise_wrong(
        self, pair: Pair, done: Run, setup: Setup, known: set[str]
    ) -> tuple[str, ...]:
        """Gradients that differ from the op's own although their directional derivative agreed."""
        if not self.is_compared(setup):
            return ()
        right, _ = self.subject.right(pair, done, setup)
        return tuple(
            name
            for name in pair.gradients
            if name not in known and not close(done.gradients[name], right[name], done.dy)
        )

    def is_compared(self, setup: Setup) -> bool:
        """Whether the op's own gradients are the right ones for these inputs."""
        same = all(fault.kind != "forward differs" for fault in self.faults)
        return self.subject.op is not None and setup.comparable and same

    def causes(self, pair: Pair, done: Run, wrong: tuple[str, ...], setup: Setup) -> list[Fault]:
        compared = self.is_compared(setup)
        return causes(self.subject, pair, done, wrong, setup, self.rng, compared=compared)

    def situation_fault(self, fault: Fault, situation: str) -> None:
        message = f"{situation}: {fault.message}"
        self.faults.append(replace(fault, message=message, situation=situation))
        self.trials.append(TrialRow(situation, "wrong", fault.kind))

    # Other inputs

    def another(self, setup: Setup) -> None:
        """The gradients that were right on the usual inputs, on others."""
        if not self.subject.applies(setup):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        known = self.settled | {fault.gradient for fault in self.faults}
        try:
            pair, arrays = self.subject.pair(setup)
            judged = [name for name in pair.gradients if name not in known]
            if not judged:
                return
            done = run(pair, arrays, self.rng)
        except (ArgumentError, TypeError):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        except TrialFault as found:
            self.refused(setup, found)
            return
        faults = [fault for fault in malformed(pair, done) if fault.gradient in judged]
        if not faults:
            wrong = tuple(self.wrong_here(pair, done, setup, judged))
            faults = self.causes(pair, done, wrong, setup) if wrong else []
        for fault in faults:
            self.faults.append(
                replace(
                    fault,
                    message=f"{fault.message}, {_where(setup, arrays)}",
                    situation=setup.situation,
                )
            )
        self.trials.append(TrialRow(setup.title, "wrong" if faults else "right", ""))

    def refused(self, setup: Setup, found: TrialFault) -> None:
        """An exception: a fault where the op itself takes these inputs, else no matter."""
        fault = found.fault
        forward_raised = fault.kind == "raises" and fault.message.startswith("forward")
        if forward_raised and (self.subject.op is None or not is_op(self.subject.target)):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        if fault.kind == "raises" and self.subject.op is not None and not forward_raised:
            y, _ = self.subject.op.forward(setup)
            _, trace = self.subject.op.gradients(setup, random_like(y, self.rng))
            if explanation := explained_exception(found.__cause__, self.subject.op.tree, trace):
                edit, words = explanation
                message = f"{fault.message}; so it does where {words}"
                alternatives = ((edit.kind, edit.part),)
                fault = replace(fault, message=message, confidence=0.5, alternatives=alternatives)
        self.situation_fault(fault, setup.title)

    def wrong_here(self, pair: Pair, done: Run, setup: Setup, names: Sequence[str]) -> list[str]:
        """Those of the named gradients that are wrong on these inputs."""
        if self.subject.op is not None and setup.comparable:
            y, _ = self.subject.op.forward(setup)
            if not same_outputs(done.y, y, rtol=1e-7, atol=1e-9):
                return []  # another forward there, by choice: not the same gradient either
            right, _ = self.subject.right(pair, done, setup)
            wrong = [
                name for name in names if not close(done.gradients[name], right[name], done.dy)
            ]
            if wrong or not setup.smooth:
                return wrong
        if not setup.smooth or not all(np.isfinite(each).all() for each in leaves(done.y)):
            return []
        rows = self.judged(pair, done, names)
        return [row.gradient for row in rows if row.verdict == "wrong"]


def _where(setup: Setup, arrays: Mapping[str, np.ndarray]) -> str:
    first = next(iter(arrays))
    return f"on {setup.title} ({first} of shape {np.shape(arrays[first])})"
