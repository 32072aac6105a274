"""One check, from the usual inputs to the unusual: gathers rows, trials and faults."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from handgrad.checking import sample_inputs
from handgrad.checking.attempts import attempt
from handgrad.checking.contents import guard_of
from handgrad.checking.conventions import TARGET
from handgrad.checking.functions import selected
from handgrad.checking.kinks import beside, noises
from handgrad.checking.localisation import parts
from handgrad.checking.precision import bounds, perturbed, precision_faults
from handgrad.checking.report import CheckReport, Fault, GradientRow, TrialRow
from handgrad.checking.sample_inputs import Setup
from handgrad.checking.situations import of_source
from handgrad.checking.stability import (
    Findings,
    other_cotangents,
    repeated,
    require_repeatable,
)
from handgrad.checking.subject import CheckedTarget
from handgrad.checking.trial import (
    TrialFault,
    TrialRun,
    changes_nothing,
    close,
    directional_row,
    forward,
    leaves,
    malformed,
    not_finite,
    other_types,
    run,
    same_outputs,
    size_of,
    unit_of,
)
from handgrad.checking.work import Work
from handgrad.errors import ArgumentError
from handgrad.forward_backward import ForwardBackward
from handgrad.layers import Layer

#: The method for gradients where differences at the point itself say nothing.
BESIDE: Final = "gradients beside the point"
#: Seconds of work on changes of the source, in all searches of one check.
_SEARCHED: Final = 6.0
#: The error of a gradient, relative, that a guard against a division by 0 excuses: so much at most,
#: and so many times the guard.
_GUARDED: Final = 1e-4
_MOST_GUARDED: Final = 1e3


class Checker:
    """One check: gathers rows and faults while it goes from the usual inputs to the unusual."""

    def __init__(self, subject: CheckedTarget, seed: int, rng: np.random.Generator) -> None:
        self.subject = subject
        self.seed = seed
        self.rng = rng
        self.work = Work(_SEARCHED)
        #: Gradients found wrong, or not fit to be judged: nothing more is said of them.
        self.settled: set[str] = set()
        self.rows: list[GradientRow] = []
        self.trials: list[TrialRow] = []
        self.faults: list[Fault] = []
        self.remarks: list[Fault] = []
        #: Inputs whose gradient came back as None, and what is meant by it.
        self.constants: set[str] = set()
        self.usual_arrays: Mapping[str, np.ndarray] = {}
        self.unjudged: tuple[str, ...] = ()

    def report(self, setups: list[Setup]) -> CheckReport:
        usual, *others = setups
        if module := self.subject.meet(usual):
            others = sample_inputs.of_op(module, self.rng)
        functions, arrays = self.subject.functions(usual)
        if not functions.gradients:
            raise ArgumentError(
                f"check: {functions.name} has no input of floats; allowed: at least one of them"
            )
        self.usual_arrays = arrays
        self.unjudged = functions.unjudged
        try:
            self.usual(functions, arrays, usual)
        except TrialFault as found:
            from handgrad.checking.raising import explained

            given = functions, arrays, found, usual, self.rng, self.work
            self.faults += attempt(partial(explained, self.subject, *given), [found.fault])
            verdict = "wrong" if any(fault.judged for fault in self.faults) else "undecided"
            self.trials.append(TrialRow("usual", verdict, found.fault.kind))
        else:
            if isinstance(self.subject.target, Layer) and self.faults:
                self.faults = self.localised(usual) or self.faults
            if self.subject.op is None:
                others = [
                    *of_source(self.subject.target, functions, arrays, usual, self.rng),
                    *sample_inputs.of_arrays(functions, arrays, usual, self.rng),
                ]
            for setup in others:
                self.another(setup)
        self.remarks += [Fault("", "convention", "", note, 1.0) for note in functions.notes]
        return CheckReport(
            functions.name,
            self.seed,
            functions.op,
            tuple(self.rows),
            tuple(self.trials),
            tuple(self.faults),
            tuple(dict.fromkeys(self.remarks)),
            unjudged=self.unjudged,
        )

    def localised(self, setup: Setup) -> list[Fault]:
        """The faults of the parts of a model that are wrong on their own, all children right."""
        found: list[Fault] = []
        culprits: list[str] = []
        inputs = list(setup.arrays.values())
        for name, layer, given, options in parts(self.subject.target, inputs, setup.options):
            if any(other.startswith(name + ".") for other in culprits):
                continue
            checker = Checker(CheckedTarget(layer), self.seed, self.rng)
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

    def usual(
        self, functions: ForwardBackward, arrays: dict[str, np.ndarray], setup: Setup
    ) -> None:
        done = run(functions, arrays, self.rng)
        require_repeatable(functions, done)
        self.faults += not_finite(done)
        functions, done = self.without_constants(functions, done)
        self.remarks += other_types(done)
        formless = malformed(functions, done)
        broken = {fault.gradient for fault in formless}
        self.faults += self.subject.different_forward(functions, done, setup)
        sound = [name for name in functions.gradients if name not in broken]
        self.gather(repeated(functions, done, sound))
        self.rows += self.judged(functions, done, sound)
        wrong = tuple(row.gradient for row in self.rows if row.verdict == "wrong")
        wrong += self.elementwise_wrong(functions, done, setup, {*wrong, *broken})
        self.settled = {*wrong, *broken}
        if wrong or formless:
            self.faults += self.causes(functions, done, wrong, setup, formless)
        self.trials.append(TrialRow("usual", "wrong" if self.faults else "right", ""))
        if not self.faults:
            self.gather(other_cotangents(functions, done, self.rng))
            found = precision_faults(functions, arrays, self.rng)
            self.faults += found.faults
            self.remarks += found.remarks
            self.rows += found.rows
            if found.applies:
                self.trials.append(TrialRow("float32", "wrong" if found.faults else "right", ""))

    def without_constants(
        self, functions: ForwardBackward, done: TrialRun
    ) -> tuple[ForwardBackward, TrialRun]:
        """The functions without gradients that are None because their inputs are constants.

        That is what None means in PyTorch, for a single number, and where forward does not change
        with the input; but some gradient has to come back.
        """
        constants = [
            name
            for name, found in done.gradients.items()
            if found is None
            and (
                functions.none_is_constant
                or np.ndim(done.arrays[name]) == 0
                or changes_nothing(functions, done, name, self.rng)
            )
        ]
        if not constants or len(constants) == len(functions.gradients):
            return functions, done
        for name in constants:
            message = f"d{name} is None: {name} is taken for a constant"
            self.remarks.append(Fault(name, "constant", "", message, 1.0))
        self.constants.update(constants)
        self.unjudged += tuple(
            name
            for name in constants
            if np.ndim(done.arrays[name])
            and not TARGET.fullmatch(name)
            and not changes_nothing(functions, done, name, self.rng)
        )
        kept = [name for name in functions.gradients if name not in constants]
        gradients = {name: done.gradients[name] for name in kept}
        return selected(functions, kept), replace(done, gradients=gradients)

    def gather(self, findings: Findings) -> None:
        self.faults += findings.faults
        self.remarks += findings.remarks
        self.trials += findings.trials

    def judged(
        self, functions: ForwardBackward, done: TrialRun, names: Sequence[str]
    ) -> list[GradientRow]:
        """One row per gradient.

        Before one is called wrong, its own rounding is counted or listened to, and it is compared
        with those beside the point, where that may be a kink.
        """
        rows = [directional_row(functions, done, name, self.rng) for name in names]
        if any(row.verdict == "wrong" for row in rows):
            rounding = self.counted_rounding(functions, done)
            rows = [
                self.with_rounding(functions, done, row, rounding.get(row.gradient)) for row in rows
            ]
        return [self.guarded(self.beside_the_point(functions, done, row)) for row in rows]

    def counted_rounding(self, functions: ForwardBackward, done: TrialRun) -> dict[str, Any]:
        """The bound of the rounding in each gradient, where it can be had."""
        try:
            counted, _ = bounds(functions, done.arrays, done.dy, unit_of(functions) / 2.0)
        except Exception:  # a stranger's function that does not stand being called so
            return {}
        return {
            name: known
            for name, known in zip(functions.gradients, counted, strict=True)
            if known is not None
        }

    def with_rounding(
        self, functions: ForwardBackward, done: TrialRun, row: GradientRow, counted: Any
    ) -> GradientRow:
        """A row that is wrong, judged again with the rounding within backward."""
        if row.verdict != "wrong" or math.isinf(row.error):
            return row
        # A count that explains everything, as where a comparison is in doubt, excuses nothing.
        if counted is not None and size_of(counted[1]) > 1e-6 * max(
            size_of(counted[0]), 1e-3 * _largest(done.dy)
        ):
            counted = None
        again = directional_row(functions, done, row.gradient, self.rng, counted)
        if again.verdict != "wrong":
            return again
        return directional_row(functions, done, row.gradient, self.rng, counted, noises)

    def beside_the_point(
        self, functions: ForwardBackward, done: TrialRun, row: GradientRow
    ) -> GradientRow:
        """A row that is not right, unless those beside the point say that it is."""
        if row.verdict == "right" or math.isinf(row.error):
            return row
        seen = beside(functions, done, row.gradient, self.rng)
        if seen == "kink":
            self.at_a_kink(row.gradient)
            return replace(row, error=0.0, verdict="right", method=BESIDE)
        if row.verdict == "undecided" and seen != "undecided":
            return replace(row, error=0.0 if seen == "right" else 1.0, verdict=seen, method=BESIDE)
        if row.verdict == "wrong" and seen == "right":
            return replace(row, error=0.0, verdict="right", method=BESIDE)
        return row

    def guarded(self, row: GradientRow) -> GradientRow:
        """A row that is right but for the tiny number that guards a division or a logarithm."""
        if row.verdict != "wrong" or not row.error <= _GUARDED:
            return row
        guard = guard_of(self.subject.target)
        if row.error > _MOST_GUARDED * guard:
            return row
        message = (
            f"d{row.gradient}: right but for the {guard:.0e} against a division by 0, which moves "
            f"it by {row.error:.0e} of its size"
        )
        self.remarks.append(Fault(row.gradient, "guard", "", message, 1.0))
        return replace(row, verdict="right", method="but for a guard against a division by 0")

    def elementwise_wrong(
        self, functions: ForwardBackward, done: TrialRun, setup: Setup, known: set[str]
    ) -> tuple[str, ...]:
        """Gradients that differ from the op's own although their directional derivative agreed."""
        if not self.is_compared(setup):
            return ()
        right = self.subject.right(functions, done, setup)
        return tuple(
            name
            for name in functions.gradients
            if name not in known and self.differs(functions, done, name, right[name])
        )

    def differs(self, functions: ForwardBackward, done: TrialRun, name: str, right: Any) -> bool:
        """Return whether a gradient is not the op's own, beyond rounding and away from kinks."""
        found = done.gradients[name]
        if close(found, right, done.dy):
            return False
        if np.shape(found) != np.shape(right):
            return True
        error = np.abs(np.asarray(found) - right)
        if np.all(error <= self.allowed_rounding(functions, done, name, right)):
            return False
        if beside(functions, done, name, self.rng) != "kink":
            return True
        self.at_a_kink(name)
        return False

    def allowed_rounding(
        self, functions: ForwardBackward, done: TrialRun, name: str, right: Any
    ) -> np.ndarray:
        """The distance that each element may have from the right one.

        It is the rounding that was counted. A count can grow without need, as through an
        exponential, so it is bounded by what the gradient's own size allows, or by what changes of
        the inputs and of the cache by one rounding make of the gradient, whichever is more.
        """
        counted = self.counted_rounding(functions, done).get(name)
        if counted is None:
            return np.zeros(np.shape(right))
        most = 1e-9 * max(size_of(right), _largest(done.dy))
        try:
            heard = perturbed(functions, done.arrays, done.dy, unit_of(functions) / 2.0)
        except Exception:  # a stranger's function that does not stand being called so
            heard = (None,) * len(functions.gradients)
        known = heard[functions.gradients.index(name)]
        allowed = most if known is None else np.maximum(most, known[1])
        return np.asarray(np.minimum(counted[1], allowed))

    def at_a_kink(self, name: str) -> None:
        message = (
            f"d{name}: forward has a kink at these inputs, such as an exact 0 or a tie; any slope "
            "between those on its sides is right, and this is one"
        )
        self.remarks.append(Fault(name, "kink", "", message, 1.0))

    def is_compared(self, setup: Setup) -> bool:
        """Return whether the op's own gradients are the right ones for these inputs."""
        same = all(fault.kind != "forward differs" for fault in self.faults)
        return self.subject.op is not None and setup.comparable and same

    def causes(
        self,
        functions: ForwardBackward,
        done: TrialRun,
        wrong: tuple[str, ...],
        setup: Setup,
        formless: Sequence[Fault] = (),
    ) -> list[Fault]:
        given = self.subject, functions, done, wrong, setup, self.rng, self.work, formless
        try:
            # The search stands on derivation, which a right backward need not wait for.
            from handgrad.checking.causes import causes

            return causes(*given, compared=self.is_compared(setup))
        except Exception as error:  # the gradients are wrong, whatever the search does
            reason = f"the search for the cause ended with {type(error).__name__}"
            return [*formless] + [
                Fault(name, "unknown", "", f"d{name} is wrong; {reason}", 0.0, setup.situation)
                for name in wrong
            ]

    def situation_fault(self, fault: Fault, setup: Setup) -> None:
        message = f"{setup.title}: {fault.message}"
        fault = replace(fault, message=message, situation=setup.situation, judged=True)
        self.blame(fault, setup)
        verdict = "right" if self.is_made_up(setup) else "wrong"
        self.trials.append(TrialRow(setup.title, verdict, fault.kind))

    def another(self, setup: Setup) -> None:
        """The gradients that were right on the usual inputs, on others."""
        if not self.subject.applies(setup):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        known = self.settled | self.constants | {fault.gradient for fault in self.faults}
        try:
            functions, arrays = self.subject.functions(setup)
            judged = [name for name in functions.gradients if name not in known]
            if not judged:
                return
            if not self.is_meant(functions, arrays, setup):
                self.trials.append(TrialRow(setup.title, "does not apply", ""))
                return
            done = run(functions, arrays, self.rng)
        except (ArgumentError, TypeError):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        except TrialFault as found:
            self.refused(setup, found)
            return
        if setup.resizes and not _fits(done):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        faults = [fault for fault in malformed(functions, done) if fault.gradient in judged]
        if not faults:
            remarks = list(self.remarks)
            wrong = tuple(self.wrong_here(functions, done, setup, judged))
            self.remarks = remarks  # that there is a kink is said of the user's own inputs alone
            faults = self.causes(functions, done, wrong, setup) if wrong else []
        for fault in faults:
            message = f"{fault.message}, {_where(setup, arrays)}"
            self.blame(replace(fault, message=message, situation=setup.situation), setup)
        blamed = faults and not self.is_made_up(setup)
        self.trials.append(TrialRow(setup.title, "wrong" if blamed else "right", ""))

    def blame(self, fault: Fault, setup: Setup) -> None:
        """A fault, or a remark where the inputs are not what the target has to stand."""
        (self.remarks if self.is_made_up(setup) else self.faults).append(fault)

    def is_made_up(self, setup: Setup) -> bool:
        """Return whether the inputs are of a kind that nobody said the target is for."""
        if self.subject.is_meant_as_op:
            return False
        arrays = [each for each in setup.arrays.values() if isinstance(each, np.ndarray)]
        finite = all(np.isfinite(each).all() for each in arrays)
        return setup.situation in ("empty", "extreme values", "ties") or not finite

    def is_meant(
        self, functions: ForwardBackward, arrays: Mapping[str, np.ndarray], setup: Setup
    ) -> bool:
        """Return whether the target's forward is written for inputs that the checker made."""
        if self.subject.op is None:
            if not setup.rows:
                return True
            several = len(arrays[setup.rows[0]]) > 1
            whole = arrays if several else self.usual_arrays
            return sample_inputs.keeps_rows(functions, whole, setup.rows, self.rng)
        if self.subject.is_meant_as_op:
            return True
        y, _ = self.subject.op.forward(setup)
        found, _ = forward(functions, arrays)
        return same_outputs(found, y, rtol=1e-7, atol=1e-9)

    def refused(self, setup: Setup, found: TrialFault) -> None:
        """An exception: a fault where the op itself takes these inputs, else no matter."""
        fault = found.fault
        if setup.resizes:
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        forward_raised = fault.kind == "raises" and fault.message.startswith("forward")
        if forward_raised and (self.subject.op is None or not self.subject.is_ops_own):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        self.situation_fault(fault, setup)

    def wrong_here(
        self, functions: ForwardBackward, done: TrialRun, setup: Setup, names: Sequence[str]
    ) -> list[str]:
        """Those of the named gradients that are wrong on these inputs."""
        if self.subject.op is not None and setup.comparable:
            y, _ = self.subject.op.forward(setup)
            if not same_outputs(done.y, y, rtol=1e-7, atol=1e-9):
                return []  # another forward there, by choice: not the same gradient either
            right = self.subject.right(functions, done, setup)
            wrong = [name for name in names if self.differs(functions, done, name, right[name])]
            if wrong or not setup.smooth:
                return wrong
        if not setup.smooth or not all(np.isfinite(each).all() for each in leaves(done.y)):
            return []
        rows = self.judged(functions, done, names)
        return [row.gradient for row in rows if row.verdict == "wrong"]


def _fits(done: TrialRun) -> bool:
    """Return whether every gradient has the shape of its input."""
    return all(
        found is None or np.shape(found) == np.shape(done.arrays[name])
        for name, found in done.gradients.items()
    )


def _largest(dy: Any) -> float:
    return max((size_of(each) for each in leaves(dy)), default=0.0)


def _where(setup: Setup, arrays: Mapping[str, np.ndarray]) -> str:
    first = next(iter(arrays))
    return f"on {setup.title} ({first} of shape {np.shape(arrays[first])})"
