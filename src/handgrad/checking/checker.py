"""One check, from the usual inputs to the unusual: gathers rows, trials and faults."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

import numpy as np

from handgrad import trees
from handgrad.checking import situations
from handgrad.checking.diagnosis import diagnose, explained_exception
from handgrad.checking.hypotheses import Draw
from handgrad.checking.localisation import parts
from handgrad.checking.precision import bounds, precision_faults
from handgrad.checking.recognition import recognised
from handgrad.checking.reference import KnownOp, by_kind
from handgrad.checking.report import CheckReport, Fault, GradientRow, TrialRow
from handgrad.checking.situations import Setup
from handgrad.checking.stability import other_cotangents, repeated
from handgrad.checking.stepwise import explained, stepwise
from handgrad.checking.targets import in_float64, is_op, is_op_name, op_module, pair_of, takes
from handgrad.checking.trial import (
    Run,
    TrialFault,
    close,
    directional_row,
    leaves,
    like_nested,
    malformed,
    not_finite,
    numeric_gradient,
    random_like,
    run,
    same_outputs,
    size_of,
)
from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.pair import Pair

#: Elements of a gradient that are computed one by one where no formula is at hand.
_ELEMENTS: Final = 2000


class Checker:
    """One check: gathers rows and faults while it goes from the usual inputs to the unusual."""

    def __init__(
        self,
        target: Any,
        op: ModuleType | None,
        wrt: Sequence[str] | None,
        seed: int,
        rng: np.random.Generator,
        *,
        own_inputs: bool,
    ) -> None:
        self.target = target
        self.op = None if op is None else KnownOp(op)
        self.wrt = wrt
        self.own_inputs = own_inputs
        self.seed = seed
        self.rng = rng
        self.form: tuple[int, ...] = ()
        #: Gradients found wrong, or not fit to be judged: nothing more is said of them.
        self.settled: set[str] = set()
        self.rows: list[GradientRow] = []
        self.trials: list[TrialRow] = []
        self.faults: list[Fault] = []

    def report(self, setups: list[Setup]) -> CheckReport:
        usual, *others = setups
        pair, arrays = self.pair(usual)
        if self.op is None:
            module = op_module(recognised(pair, arrays))
            self.op = None if module is None else KnownOp(module)
            pair, arrays = self.pair(usual)
            others = [] if module is None else situations.of_op(module, self.rng)
        if not pair.gradients:
            raise ArgumentError(
                f"check: {pair.name} has no input of floats; allowed: at least one of them"
            )
        self.form = _form(self.op, usual)
        try:
            self.usual(pair, arrays, usual)
        except TrialFault as found:
            self.faults.append(found.fault)
            self.trials.append(TrialRow("usual", "wrong", found.fault.kind))
        else:
            if isinstance(self.target, Layer) and self.faults:
                self.faults = self.localised(usual) or self.faults
            if self.op is None:
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
        for name, layer, given, options in parts(self.target, inputs, setup.options):
            if any(other.startswith(name + ".") for other in culprits):
                continue
            checker = Checker(layer, None, None, self.seed, self.rng, own_inputs=True)
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

    # What is being run

    def pair(self, setup: Setup) -> tuple[Pair, dict[str, np.ndarray]]:
        """The target for these inputs, and its arrays by the names of its arguments."""
        positional, keyword = by_kind(self.op.module if self.op else None, setup)
        pair = pair_of(
            self.target,
            list(positional.values()),
            like=self.op.module if self.op and not is_op(self.target) else None,
            wrt=self.wrt,
            options={**setup.options, **keyword},
        )
        own = [name for name in pair.inputs if name not in pair.parameters]
        given = [array for array in positional.values() if array is not None]
        if len(own) != len(given):
            raise ArgumentError(
                f"check: {len(given)} inputs are given for {pair.name}; allowed: {len(own)}, "
                f"for {', '.join(own)}"
            )
        arrays = dict(zip(own, given, strict=True))
        brought = {
            name: np.array(array, dtype=np.float64 if array.dtype.kind == "f" else None)
            for name, array in pair.parameters.items()
        }
        return in_float64(pair), {**arrays, **brought}

    # The usual inputs

    def usual(self, pair: Pair, arrays: dict[str, np.ndarray], setup: Setup) -> None:
        done = run(pair, arrays, self.rng)
        self.faults += not_finite(done)
        malformed_faults = malformed(pair, done)
        self.faults += malformed_faults
        broken = {fault.gradient for fault in malformed_faults}
        self.faults += self.different_forward(pair, done, setup)
        self.gather(repeated(pair, done, [n for n in pair.gradients if n not in broken]))
        sound = [name for name in pair.gradients if name not in broken]
        self.rows += self.judged(pair, done, sound)
        wrong = tuple(row.gradient for row in self.rows if row.verdict == "wrong")
        wrong += self.elementwise_wrong(pair, done, setup, {*wrong, *broken})
        self.settled = {*wrong, *broken}
        if wrong:
            self.faults += self.diagnosed(pair, done, wrong, setup)
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

    def different_forward(self, pair: Pair, done: Run, setup: Setup) -> list[Fault]:
        """Where the target is meant to be an op: a forward that gives something else."""
        if self.op is None or is_op(self.target) or callable(self.target):
            return []
        y = self.op.forward(setup)[0]
        if same_outputs(done.y, y, rtol=1e-9, atol=1e-12):
            return []
        stem = self.op.stem
        shape, right = like_nested(done.y, np.shape), like_nested(y, np.shape)
        if shape != right:
            what = f"y has shape {shape}, {stem}'s {right}"
        else:
            pairs = zip(leaves(y), leaves(done.y), strict=True)
            what = f"y differs by up to {max(np.max(np.abs(a - b)) for a, b in pairs):.3g}"
        message = f"forward is not that of {stem}: {what}"
        return [Fault("", "forward differs", "", message, 1.0, setup.situation)]

    def right(self, pair: Pair, done: Run, setup: Setup) -> tuple[dict[str, Any], Any]:
        """The known op's gradients by the target's names, and the trace of its backward."""
        assert self.op is not None
        gradients, run = self.op.gradients(setup, done.dy)
        return dict(zip(pair.gradients, gradients, strict=True)), run

    def elementwise_wrong(
        self, pair: Pair, done: Run, setup: Setup, known: set[str]
    ) -> tuple[str, ...]:
        """Gradients that differ from the op's own although their directional derivative agreed."""
        if self.op is None or any(fault.kind == "forward differs" for fault in self.faults):
            return ()
        right, _ = self.right(pair, done, setup)
        return tuple(
            name
            for name in pair.gradients
            if name not in known and not close(done.gradients[name], right[name], done.dy)
        )

    def diagnosed(self, pair: Pair, done: Run, wrong: tuple[str, ...], setup: Setup) -> list[Fault]:
        """The faults behind wrong gradients, from this draw and one with another cotangent."""
        second = run(pair, done.arrays, self.rng)
        with pair.context():
            draws = tuple(self.draw(pair, each, wrong, setup) for each in (done, second))
            op_tree = self.op.tree if self.op and draws[0].op_trace else None
            own_tree = _readable(pair) if draws[0].own_trace else None
            faults = diagnose(
                wrong,
                draws,
                gradients=pair.gradients,
                op=op_tree,
                own=own_tree,
                situation=setup.situation,
            )
            if any(fault.kind == "unknown" for fault in faults):
                faults = self.line_by_line(pair, done, second, faults)
        return [self.not_linear(pair, done, fault) for fault in faults]

    def line_by_line(self, pair: Pair, done: Run, second: Run, faults: list[Fault]) -> list[Fault]:
        """What no single cause explains: every line of the target's own backward by itself."""
        forward, backward = _read(pair.forward_source), _readable(pair)
        inputs = [done.arrays[name] for name in pair.inputs]
        small = sum(array.size for array in inputs) <= _ELEMENTS
        if forward is None or backward is None or not small or pair.source_arguments is not None:
            return faults
        positions = dict(enumerate(pair.gradients))
        dys = [done.dy, second.dy]
        steps = stepwise(forward, backward, inputs, dys, positions, self.rng, pair.forward_options)
        wrong = [fault.gradient for fault in faults]
        found = explained(steps, wrong, done.arrays, done.y)
        told = " ".join(fault.message for fault in found)
        return [*(fault for fault in faults if f"d{fault.gradient}" not in told), *found]

    def not_linear(self, pair: Pair, done: Run, fault: Fault) -> Fault:
        """An unexplained gradient that does not turn with dy: it depends on dy in another way."""
        if fault.kind != "unknown":
            return fault
        name = fault.gradient
        turned = run(pair, done.arrays, self.rng, dy=like_nested(done.dy, np.negative))
        if close(turned.gradients[name], -np.asarray(done.gradients[name]), done.dy):
            return fault
        message = f"d{name}: is not linear in dy: for −dy it is not −d{name}"
        return replace(fault, kind="not linear", message=message, confidence=0.9)

    def draw(self, pair: Pair, done: Run, wrong: tuple[str, ...], setup: Setup) -> Draw:
        right: dict[str, Any] = {}
        tolerances: dict[str, float] = {}
        op_trace = None
        if (
            self.op is not None
            and setup.comparable
            and not any(fault.kind == "forward differs" for fault in self.faults)
        ):
            right, op_trace = self.right(pair, done, setup)
            tolerances = {name: 1e-12 * size_of(right[name]) for name in right}
        else:
            for name in wrong:
                right[name], tolerances[name] = numeric_gradient(
                    pair, done, name, _ELEMENTS, self.rng
                )
        own = None if is_op(self.target) or is_op_name(self.target) else _readable(pair)
        own_trace = None
        if own is not None:
            inputs = [done.arrays[name] for name in pair.inputs]
            dy = copy.deepcopy(done.dy)  # in case it writes into it
            try:
                if pair.source_arguments is None:
                    own_trace = trees.trace(own, dy, copy.deepcopy(done.cache))
                else:
                    own_trace = trees.trace(own, *pair.source_arguments(inputs, dy, done.cache))
            except Exception:  # the tree of a function we know nothing of; it is not needed
                own_trace = None
        found = {name: done.gradients[name] for name in pair.gradients}
        return Draw(done.arrays, done.y, done.dy, found, right, tolerances, op_trace, own_trace)

    def situation_fault(self, fault: Fault, situation: str) -> None:
        message = f"{situation}: {fault.message}"
        self.faults.append(replace(fault, message=message, situation=situation))
        self.trials.append(TrialRow(situation, "wrong", fault.kind))

    # Other inputs

    def another(self, setup: Setup) -> None:
        """The gradients that were right on the usual inputs, on others."""
        if not self.applies(setup):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        known = self.settled | {fault.gradient for fault in self.faults}
        try:
            pair, arrays = self.pair(setup)
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
            faults = self.diagnosed(pair, done, wrong, setup) if wrong else []
        for fault in faults:
            self.faults.append(
                replace(
                    fault,
                    message=f"{fault.message}, {_where(setup, arrays)}",
                    situation=setup.situation,
                )
            )
        self.trials.append(TrialRow(setup.title, "wrong" if faults else "right", ""))

    def applies(self, setup: Setup) -> bool:
        """Whether a situation of a known op is one for the target, which may be less general."""
        if self.op is None or is_op(self.target) or is_op_name(self.target):
            return True
        same_form = _form(self.op, setup) == self.form or not self.own_inputs
        forward = getattr(self.target, "forward", None)
        forward = self.target[0] if isinstance(self.target, tuple) else forward
        return same_form and (forward is None or takes(forward, setup.options))

    def refused(self, setup: Setup, found: TrialFault) -> None:
        """An exception: a fault where the op itself takes these inputs, else no matter."""
        fault = found.fault
        forward_raised = fault.kind == "raises" and fault.message.startswith("forward")
        if forward_raised and (self.op is None or not is_op(self.target)):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        if fault.kind == "raises" and self.op is not None and not forward_raised:
            y, _ = self.op.forward(setup)
            _, run = self.op.gradients(setup, random_like(y, self.rng))
            if explanation := explained_exception(found.__cause__, self.op.tree, run):
                edit, words = explanation
                message = f"{fault.message}; so it does where {words}"
                alternatives = ((edit.kind, edit.part),)
                fault = replace(fault, message=message, confidence=0.5, alternatives=alternatives)
        self.situation_fault(fault, setup.title)

    def wrong_here(self, pair: Pair, done: Run, setup: Setup, names: Sequence[str]) -> list[str]:
        """Those of the named gradients that are wrong on these inputs."""
        if self.op is not None and setup.comparable:
            y, _ = self.op.forward(setup)
            if not same_outputs(done.y, y, rtol=1e-7, atol=1e-9):
                return []  # another forward there, by choice: not the same gradient either
            right, _ = self.right(pair, done, setup)
            wrong = [
                name for name in names if not close(done.gradients[name], right[name], done.dy)
            ]
            if wrong or not setup.smooth:
                return wrong
        if not setup.smooth or not all(np.isfinite(each).all() for each in leaves(done.y)):
            return []
        rows = self.judged(pair, done, names)
        return [row.gradient for row in rows if row.verdict == "wrong"]


def _form(op: KnownOp | None, setup: Setup) -> tuple[int, ...]:
    """How many axes each input has."""
    positional, _ = by_kind(op.module if op else None, setup)
    return tuple(np.ndim(array) for array in positional.values())


def _where(setup: Setup, arrays: Mapping[str, np.ndarray]) -> str:
    first = next(iter(arrays))
    return f"on {setup.title} ({first} of shape {np.shape(arrays[first])})"


def _readable(pair: Pair) -> trees.Function | None:
    return _read(pair.source)


def _read(function: Any) -> trees.Function | None:
    """The tree of a user's function; None where there is none to be had."""
    if function is None:
        return None
    try:
        return trees.read(function, stores=True)
    except trees.TreeError:
        return None
