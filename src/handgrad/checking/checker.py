"""One check, from the usual inputs to the unusual: gathers rows, trials and faults."""

from __future__ import annotations

import inspect
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
from handgrad.checking.pair import Pair
from handgrad.checking.precision import bounds, precision_faults
from handgrad.checking.recognition import recognised
from handgrad.checking.report import CheckReport, Fault, GradientRow, TrialRow
from handgrad.checking.situations import Setup
from handgrad.checking.targets import is_op, is_op_name, op_module, pair_of, takes
from handgrad.checking.trial import (
    Run,
    TrialFault,
    backward,
    directional_row,
    leaves,
    like_nested,
    malformed,
    numeric_gradient,
    random_like,
    run,
    same_outputs,
)
from handgrad.dispatch import engine
from handgrad.errors import ArgumentError
from handgrad.layers import Layer

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
        self.op = op
        self.wrt = wrt
        self.own_inputs = own_inputs
        self.seed = seed
        self.rng = rng
        self.form: dict[str, int] = {}
        self.wrong: set[str] = set()
        self.rows: list[GradientRow] = []
        self.trials: list[TrialRow] = []
        self.faults: list[Fault] = []

    def report(self, setups: list[Setup]) -> CheckReport:
        usual, *others = setups
        pair, arrays = self.pair(usual)
        if self.op is None:
            self.op = op_module(recognised(pair, arrays))
            pair, arrays = self.pair(usual)
            others = [] if self.op is None else situations.of_op(self.op, self.rng)
        self.form = {name: np.ndim(array) for name, array in arrays.items()}
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
        positional, keyword = _by_kind(self.op, setup)
        pair = pair_of(
            self.target,
            list(positional.values()),
            like=self.op if not is_op(self.target) else None,
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
        wide = np.float64 if pair.takes_float64 else np.float32
        brought = {
            name: np.array(array, dtype=wide if array.dtype.kind == "f" else None)
            for name, array in pair.parameters.items()
        }
        return pair, {**arrays, **brought}

    # The usual inputs

    def usual(self, pair: Pair, arrays: dict[str, np.ndarray], setup: Setup) -> None:
        done = run(pair, arrays, self.rng)
        malformed_faults = malformed(pair, done)
        self.faults += malformed_faults
        broken = {fault.gradient for fault in malformed_faults}
        self.faults += self.different_forward(pair, arrays, done, setup)
        self.rows += self.judged(pair, done, [n for n in pair.gradients if n not in broken])
        wrong = tuple(row.gradient for row in self.rows if row.verdict == "wrong")
        wrong += self.elementwise_wrong(pair, done, setup, {*wrong, *broken})
        if wrong:
            self.wrong = set(wrong)
            self.faults += self.diagnosed(pair, done, wrong, setup)
        self.trials.append(TrialRow("usual", "wrong" if self.faults else "right", ""))
        self.repeated(pair, done)
        if not self.faults:
            self.other_cotangents(pair, done)
            faults, rows = precision_faults(pair, arrays, self.rng)
            self.faults += faults
            self.rows += rows
            self.trials.append(TrialRow("float32", "wrong" if faults else "right", ""))

    def judged(self, pair: Pair, done: Run, names: Sequence[str]) -> list[GradientRow]:
        """One row per gradient. Before one is called wrong, its own float64 rounding is counted."""
        rows = [directional_row(pair, done, name, self.rng) for name in names]
        if not any(row.verdict == "wrong" for row in rows):
            return rows
        counted, _ = bounds(pair, done.arrays, done.dy, 2.0**-53)
        rounding = dict(zip(pair.gradients, counted, strict=True))
        return [
            directional_row(pair, done, row.gradient, self.rng, rounding[row.gradient])
            if row.verdict == "wrong"
            else row
            for row in rows
        ]

    def different_forward(
        self, pair: Pair, arrays: dict[str, np.ndarray], done: Run, setup: Setup
    ) -> list[Fault]:
        """Where the target is meant to be an op: a forward that gives something else."""
        if self.op is None or is_op(self.target) or callable(self.target):
            return []
        y = self.right_forward(setup)[0]
        if same_outputs(done.y, y, rtol=1e-9, atol=1e-12):
            return []
        stem = self.op.__name__.rpartition(".")[2]
        shape, right = like_nested(done.y, np.shape), like_nested(y, np.shape)
        if shape != right:
            what = f"y has shape {shape}, {stem}'s {right}"
        else:
            pairs = zip(leaves(y), leaves(done.y), strict=True)
            what = f"y differs by up to {max(np.max(np.abs(a - b)) for a, b in pairs):.3g}"
        message = f"forward is not that of {stem}: {what}"
        return [Fault("", "forward differs", "", message, 1.0, setup.situation)]

    def right_forward(self, setup: Setup) -> tuple[Any, Any]:
        assert self.op is not None
        pair, arrays = self.reference(setup)
        with engine("reference"):
            result: tuple[Any, Any] = pair.forward(*arrays.values())
        return result

    def reference(self, setup: Setup) -> tuple[Pair, dict[str, np.ndarray]]:
        """The op itself on these inputs."""
        assert self.op is not None
        positional, keyword = _by_kind(self.op, setup)
        pair = pair_of(self.op, list(positional.values()), options={**setup.options, **keyword})
        given = (array for array in positional.values() if array is not None)
        return pair, dict(zip(pair.inputs, given, strict=True))

    def right_gradients(self, setup: Setup, dy: Any) -> tuple[dict[str, Any], Any]:
        """The op's own gradients for this cotangent, and the trace of its backward."""
        pair, _ = self.reference(setup)
        _, cache = self.right_forward(setup)
        with engine("reference"):
            gradients = backward(pair, dy, cache)
            tree = trees.read(self.op.backward)  # type: ignore[union-attr]
            return gradients, trees.trace(tree, dy, cache)

    def elementwise_wrong(
        self, pair: Pair, done: Run, setup: Setup, known: set[str]
    ) -> tuple[str, ...]:
        """Gradients that differ from the op's own although their directional derivative agreed."""
        if self.op is None or any(fault.kind == "forward differs" for fault in self.faults):
            return ()
        right, _ = self.right_gradients(setup, done.dy)
        return tuple(
            name
            for name in pair.gradients
            if name not in known and not _close(done.gradients[name], right[name], done.dy)
        )

    def diagnosed(self, pair: Pair, done: Run, wrong: tuple[str, ...], setup: Setup) -> list[Fault]:
        """The faults behind wrong gradients, from this draw and one with another cotangent."""
        second = run(pair, done.arrays, self.rng)
        with pair.context():
            draws = tuple(self.draw(pair, each, wrong, setup) for each in (done, second))
            op_tree = trees.read(self.op.backward) if self.op and draws[0].op_trace else None
            own_tree = _readable(pair) if draws[0].own_trace else None
            return diagnose(
                wrong,
                draws,
                gradients=pair.gradients,
                op=op_tree,
                own=own_tree,
                situation=setup.situation,
            )

    def draw(self, pair: Pair, done: Run, wrong: tuple[str, ...], setup: Setup) -> Draw:
        right: dict[str, Any] = {}
        tolerances: dict[str, float] = {}
        op_trace = None
        comparable = self.op is not None and setup.comparable
        if comparable and not any(fault.kind == "forward differs" for fault in self.faults):
            right, op_trace = self.right_gradients(setup, done.dy)
            tolerances = {name: 1e-12 * _size(right[name]) for name in right}
        else:
            for name in wrong:
                right[name], tolerances[name] = numeric_gradient(
                    pair, done, name, _ELEMENTS, self.rng
                )
        own = None if is_op(self.target) or is_op_name(self.target) else _readable(pair)
        own_trace = None
        if own is not None:
            inputs = [done.arrays[name] for name in pair.inputs]
            arguments = pair.source_arguments
            try:
                own_trace = trees.trace(
                    own,
                    *(
                        arguments(inputs, done.dy, done.cache)
                        if arguments
                        else (done.dy, done.cache)
                    ),
                )
            except Exception:  # the tree of a function we know nothing of; it is not needed
                own_trace = None
        found = {name: done.gradients[name] for name in pair.gradients}
        return Draw(done.arrays, done.y, done.dy, found, right, tolerances, op_trace, own_trace)

    # What must not change anything

    def repeated(self, pair: Pair, done: Run) -> None:
        """A second backward gives the same, and nothing has been written to."""
        copies = {name: np.array(array) for name, array in done.arrays.items()}
        fresh = run(pair, copies, self.rng)
        kept = situations.kept_arrays(fresh)
        before = {name: array.copy() for name, array in kept.items()}
        first = {name: np.array(value) for name, value in fresh.gradients.items()}
        arrays_before = {name: np.asarray(array).copy() for name, array in done.arrays.items()}
        changed = situations.written(arrays_before, copies)
        second = backward(pair, fresh.dy, fresh.cache)
        changed += [n for n in situations.written(before, kept) if n not in changed]
        for name in changed:
            message = f"{name} is written to; allowed: reading it"
            self.faults.append(Fault("", "written to", name, message, 1.0))
        self.trials.append(TrialRow("read-only inputs", "wrong" if changed else "right", ""))
        differing = [
            name
            for name in pair.gradients
            if not np.array_equal(first[name], np.asarray(second[name]), equal_nan=True)
        ]
        for name in differing:
            twice = np.allclose(2.0 * first[name], np.asarray(second[name]), rtol=1e-9)
            what = "twice as large: it accumulates" if twice else "something else"
            message = f"d{name}: a second call of backward with the same cache gives {what}"
            self.faults.append(Fault(name, "not repeatable", "", message, 1.0))
        self.trials.append(TrialRow("backward twice", "wrong" if differing else "right", ""))

    def other_cotangents(self, pair: Pair, done: Run) -> None:
        """The same values in another layout give the same gradients."""
        for situation, dy, values_changed in situations.cotangents(done.y, done.dy):
            values = dy if values_changed else done.dy
            plain = like_nested(values, lambda array: np.array(array, order="C"))
            try:
                again = run(pair, done.arrays, self.rng, dy=plain)
                other = run(pair, done.arrays, self.rng, dy=dy)
            except TrialFault as found:
                self.situation_fault(found.fault, situation)
                continue
            wrong = [
                name
                for name in pair.gradients
                if not _close(other.gradients[name], again.gradients[name], dy)
            ]
            for name in wrong:
                message = f"d{name}: wrong for a {situation}; right when dy is contiguous"
                self.faults.append(
                    Fault(name, "strided cotangent", situation, message, 1.0, situation)
                )
            self.trials.append(TrialRow(situation, "wrong" if wrong else "right", ""))

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
        known = self.wrong | {fault.gradient for fault in self.faults}
        try:
            pair, arrays = self.pair(setup)
            done = run(pair, arrays, self.rng)
        except (ArgumentError, TypeError):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        except TrialFault as found:
            self.refused(setup, found)
            return
        faults = [fault for fault in malformed(pair, done) if fault.gradient not in known]
        if not faults:
            wrong = tuple(name for name in self.wrong_here(pair, done, setup) if name not in known)
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
        form = {name: np.ndim(array) for name, array in setup.arrays.items()}
        same_form = form == self.form or not self.own_inputs
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
            y, _ = self.right_forward(setup)
            _, run = self.right_gradients(setup, random_like(y, self.rng))
            tree = trees.read(self.op.backward)
            if explanation := explained_exception(found.__cause__, tree, run):
                edit, words = explanation
                message = f"{fault.message}; so it does where {words}"
                alternatives = ((edit.kind, edit.part),)
                fault = replace(fault, message=message, confidence=0.5, alternatives=alternatives)
        self.situation_fault(fault, setup.title)

    def wrong_here(self, pair: Pair, done: Run, setup: Setup) -> list[str]:
        if self.op is not None and setup.comparable:
            y, _ = self.right_forward(setup)
            if not same_outputs(done.y, y, rtol=1e-7, atol=1e-9):
                return []  # another forward there, by choice: not the same gradient either
            right, _ = self.right_gradients(setup, done.dy)
            wrong = [
                name
                for name in pair.gradients
                if not _close(done.gradients[name], right[name], done.dy)
            ]
            if wrong or not setup.smooth:
                return wrong
        if not setup.smooth or not all(np.isfinite(each).all() for each in leaves(done.y)):
            return []
        rows = self.judged(pair, done, pair.gradients)
        return [row.gradient for row in rows if row.verdict == "wrong"]


def _where(setup: Setup, arrays: Mapping[str, np.ndarray]) -> str:
    first = next(iter(arrays))
    return f"on {setup.title} ({first} of shape {np.shape(arrays[first])})"


def _by_kind(
    op: ModuleType | None, setup: Setup
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The arrays that go in by position, and those that forward takes by keyword only.

    None stands for an optional input that is left out before one that is given.
    """
    if op is None:
        return dict(setup.arrays), {}
    parameters = inspect.signature(op.forward).parameters
    keyword = {
        name: array
        for name, array in setup.arrays.items()
        if name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
    }
    given = {name: a for name, a in setup.arrays.items() if name not in keyword}
    if not given.keys() <= parameters.keys():  # the user's own, by position
        return given, keyword
    names = list(parameters)
    last = max(names.index(name) for name in given)
    return {name: given.get(name) for name in names[: last + 1]}, keyword


def _readable(pair: Pair) -> trees.Function | None:
    if pair.source is None:
        return None
    try:
        return trees.read(pair.source)
    except trees.TreeError:
        return None


def _size(gradient: Any) -> float:
    return float(np.max(np.abs(np.asarray(gradient)), initial=0.0))


def _close(found: Any, right: Any, dy: Any) -> bool:
    """Equal but for the order of float64 sums; 1e-9 of the gradient or, where it cancels, of dy."""
    found, right = np.asarray(found), np.asarray(right)
    if found.shape != right.shape:
        return False
    scale = max(_size(right), 1e-3 * max((_size(each) for each in leaves(dy)), default=0.0))
    if not np.isfinite(scale):
        return bool(np.allclose(found, right, rtol=1e-9, equal_nan=True))
    return bool(np.all(np.abs(found - right) <= 1e-9 * scale))
