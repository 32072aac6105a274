"""`hg.check`: is this backward the gradient of this forward, and if not, which term is wrong?"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

import numpy as np

from handgrad import trees
from handgrad.checking import situations
from handgrad.checking.diagnosis import diagnose
from handgrad.checking.hypotheses import Draw
from handgrad.checking.pair import Pair
from handgrad.checking.precision import precision_faults
from handgrad.checking.recognition import recognised
from handgrad.checking.report import CheckReport, Fault, GradientRow, TrialRow
from handgrad.checking.situations import Setup
from handgrad.checking.targets import is_op, op_module, pair_of, takes
from handgrad.checking.trial import (
    Run,
    TrialFault,
    backward,
    directional_row,
    leaves,
    like_nested,
    malformed,
    numeric_gradient,
    run,
)
from handgrad.dispatch import engine
from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.ops import OPS

#: Elements of a gradient that are computed one by one where no formula is at hand.
_ELEMENTS: Final = 2000


def check(
    target: Any,
    *inputs: Any,
    like: Any = None,
    wrt: Sequence[str] | None = None,
    seed: int = 0,
    training: bool = True,
    **options: Any,
) -> CheckReport:
    """Check every gradient of `target`, and say of each wrong one what is wrong with it.

    `target` is an op (`hg.ops.layer_norm` or its name), a layer or model, a pair of functions
    (forward, backward) in the op contract, a module or class with both, a backward alone with
    `like`, a torch.autograd.Function, a torch.nn.Module, or a jax.custom_vjp function.

    `inputs` are arrays for forward, in its order; an op, and anything with `like`, needs none.
    Floats are taken as float64 and again as float32. `like` is the op that the target is meant to
    be: its forward is compared, and its formula gives faults their names. `wrt` names the inputs
    that backward returns gradients for, where these are not all inputs of floats. `training` is
    passed to layers, `options` to forward. All random numbers come from `seed`.

    Gradients are contracted with a random cotangent along random directions and compared with
    central differences; where one fails it is compared element by element. The report's bounds come
    from the error model of the differences, and for float32 from a count of its operations.

    Raises ArgumentError for a target or inputs that are nothing of the above. What is wrong with
    the target itself is in the report, whatever it does.
    """
    op = op_module(target) if is_op(target) or _is_name(target) else op_module(like)
    rng = np.random.default_rng(seed)
    setups = _setups(target, inputs, op, options, rng)
    checker = _Checker(target, op, wrt, training, seed, rng)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return checker.report(setups)


def _is_name(target: Any) -> bool:
    return isinstance(target, str) and target in OPS


def _setups(
    target: Any,
    inputs: Sequence[Any],
    op: ModuleType | None,
    options: Mapping[str, Any],
    rng: np.random.Generator,
) -> list[Setup]:
    """The inputs to try, the user's own first."""
    known = [] if op is None else situations.of_op(op, rng)
    if not inputs:
        if not known:
            raise ArgumentError(
                f"check: no inputs are given for {target!r}; allowed without inputs: an op, or a "
                "target with like="
            )
        if options:
            known = [replace(known[0], options={**known[0].options, **options})]
        return known
    arrays = {str(i): _as_array(i, value) for i, value in enumerate(inputs)}
    return [Setup("usual", "", arrays, options, smooth=True), *known]


def _as_array(position: int, value: Any) -> Any:
    """Floats as float64, integers and booleans as they are; what is no array stays."""
    try:
        array = np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)
    except Exception:
        raise ArgumentError(
            f"check: input {position} is a {type(value).__name__}; allowed: arrays"
        ) from None
    if array.dtype.kind not in "fiub":
        raise ArgumentError(f"check: input {position} is of {array.dtype}; allowed: numbers")
    if array.dtype.kind == "f":
        return np.array(array, dtype=np.float64)
    return np.array(array)


class _Checker:
    """One check: gathers rows and faults while it goes from the usual inputs to the unusual."""

    def __init__(
        self,
        target: Any,
        op: ModuleType | None,
        wrt: Sequence[str] | None,
        training: bool,
        seed: int,
        rng: np.random.Generator,
    ) -> None:
        self.target = target
        self.op = op
        self.wrt = wrt
        self.training = training
        self.seed = seed
        self.rng = rng
        self.rows: list[GradientRow] = []
        self.trials: list[TrialRow] = []
        self.faults: list[Fault] = []

    def report(self, setups: list[Setup]) -> CheckReport:
        usual, *others = setups
        pair, arrays = self.pair(usual)
        if self.op is None:
            name = recognised(pair, arrays)
            self.op = op_module(name)
            pair, arrays = self.pair(usual)
        try:
            self.usual(pair, arrays, usual)
        except TrialFault as found:
            self.faults.append(found.fault)
            self.trials.append(TrialRow("usual", "wrong", found.fault.kind))
        else:
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
            training=self.training,
        )
        own = [name for name in pair.inputs if name not in pair.parameters]
        if len(own) != len(positional):
            raise ArgumentError(
                f"check: {len(positional)} inputs are given for {pair.name}; allowed: {len(own)}, "
                f"for {', '.join(own)}"
            )
        arrays = dict(zip(own, positional.values(), strict=True))
        return pair, {**arrays, **{name: np.array(a) for name, a in pair.parameters.items()}}

    # The usual inputs

    def usual(self, pair: Pair, arrays: dict[str, np.ndarray], setup: Setup) -> None:
        done = run(pair, arrays, self.rng)
        malformed_faults = malformed(pair, done)
        self.faults += malformed_faults
        broken = {fault.gradient for fault in malformed_faults}
        self.faults += self.different_forward(pair, arrays, done, setup)
        for name in pair.gradients:
            if name not in broken:
                self.rows.append(directional_row(pair, done, name, self.rng))
        wrong = tuple(row.gradient for row in self.rows if row.verdict == "wrong")
        wrong += self.elementwise_wrong(pair, done, setup, {*wrong, *broken})
        if wrong:
            self.faults += self.diagnosed(pair, done, wrong, setup)
        self.trials.append(TrialRow("usual", "wrong" if self.faults else "right", ""))
        self.repeated(pair, done)
        if not self.faults:
            self.other_cotangents(pair, done)
            faults, rows = precision_faults(pair, arrays, self.rng)
            self.faults += faults
            self.rows += rows
            self.trials.append(TrialRow("float32", "wrong" if faults else "right", ""))

    def different_forward(
        self, pair: Pair, arrays: dict[str, np.ndarray], done: Run, setup: Setup
    ) -> list[Fault]:
        """Where the target is meant to be an op: a forward that gives something else."""
        if self.op is None or is_op(self.target) or callable(self.target):
            return []
        y = self.right_forward(setup)[0]
        if np.shape(y) == np.shape(done.y) and np.allclose(y, done.y, rtol=1e-9, atol=1e-12):
            return []
        stem = self.op.__name__.rpartition(".")[2]
        if np.shape(y) != np.shape(done.y):
            what = f"y has shape {np.shape(done.y)}, {stem}'s {np.shape(y)}"
        else:
            what = f"y differs by up to {np.max(np.abs(y - done.y)):.3g}"
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
        return pair, dict(zip(pair.inputs, positional.values(), strict=True))

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
        own = None if is_op(self.target) or _is_name(self.target) else _readable(pair)
        own_trace = None
        if own is not None and len(own.parameters) >= 2:
            try:
                own_trace = trees.trace(own, done.dy, done.cache)
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
                again = run(pair, done.arrays, self.rng, cotangent=lambda y, dy=plain: dy)
                other = run(pair, done.arrays, self.rng, cotangent=lambda y, dy=dy: dy)
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
        if self.op is not None and not is_op(self.target) and not _is_name(self.target):
            forward = getattr(self.target, "forward", None)
            forward = self.target[0] if isinstance(self.target, tuple) else forward
            if forward is not None and not takes(forward, setup.options):
                self.trials.append(TrialRow(setup.title, "does not apply", ""))
                return
        known = {fault.gradient for fault in self.faults}
        try:
            pair, arrays = self.pair(setup)
            done = run(pair, arrays, self.rng)
        except (ArgumentError, TypeError):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
            return
        except TrialFault as found:
            self.refused(setup, found.fault)
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

    def refused(self, setup: Setup, fault: Fault) -> None:
        """An exception: a fault where the op itself takes these inputs, else no matter."""
        forward_raised = fault.kind == "raises" and fault.message.startswith("forward")
        if forward_raised and (self.op is None or not is_op(self.target)):
            self.trials.append(TrialRow(setup.title, "does not apply", ""))
        else:
            self.situation_fault(fault, setup.title)

    def wrong_here(self, pair: Pair, done: Run, setup: Setup) -> list[str]:
        if self.op is not None and setup.comparable:
            y, _ = self.right_forward(setup)
            if np.shape(y) != np.shape(done.y) or not np.allclose(
                y, done.y, rtol=1e-7, atol=1e-9, equal_nan=True
            ):
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
        rows = [directional_row(pair, done, name, self.rng) for name in pair.gradients]
        return [row.gradient for row in rows if row.verdict == "wrong"]


def _where(setup: Setup, arrays: Mapping[str, np.ndarray]) -> str:
    first = next(iter(arrays))
    return f"on {setup.title} ({first} of shape {np.shape(arrays[first])})"


def _by_kind(
    op: ModuleType | None, setup: Setup
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The arrays that go in by position, and those that forward takes by keyword only."""
    if op is None:
        return dict(setup.arrays), {}
    parameters = inspect.signature(op.forward).parameters
    keyword = {
        name: array
        for name, array in setup.arrays.items()
        if name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
    }
    return {name: a for name, a in setup.arrays.items() if name not in keyword}, keyword


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


def is_model(target: Any) -> bool:
    return isinstance(target, Layer) and bool(target.layers)
