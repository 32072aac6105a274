"""The faults behind wrong gradients: what was computed is set beside what should have been."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Final

import numpy as np

from handgrad import trees
from handgrad.checking.diagnosis import diagnose
from handgrad.checking.hypotheses import Draw
from handgrad.checking.report import Fault
from handgrad.checking.situations import Setup
from handgrad.checking.stepwise import explained, stepwise
from handgrad.checking.subject import Subject
from handgrad.checking.trial import Run, close, like_nested, numeric_gradient, run, size_of
from handgrad.pair import Pair

#: Elements of a gradient that are computed one by one where no formula is at hand.
_ELEMENTS: Final = 2000


def causes(
    subject: Subject,
    pair: Pair,
    done: Run,
    wrong: tuple[str, ...],
    setup: Setup,
    rng: np.random.Generator,
    *,
    compared: bool,
) -> list[Fault]:
    """The faults behind wrong gradients, from this draw and one with another cotangent.

    `compared`: the subject's op says what is right; otherwise differences do.
    """
    second = run(pair, done.arrays, rng)
    with pair.context():
        draws = tuple(
            _draw(subject, pair, each, wrong, setup, rng, compared=compared)
            for each in (done, second)
        )
        op_tree = subject.op.tree if subject.op and draws[0].op_trace else None
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
            faults = _line_by_line(pair, done, second, faults, rng)
    return [_not_linear(pair, done, fault, rng) for fault in faults]


def _line_by_line(
    pair: Pair, done: Run, second: Run, faults: list[Fault], rng: np.random.Generator
) -> list[Fault]:
    """What no single cause explains: every line of the target's own backward by itself."""
    forward, backward = _read(pair.forward_source), _readable(pair)
    inputs = [done.arrays[name] for name in pair.inputs]
    small = sum(array.size for array in inputs) <= _ELEMENTS
    if forward is None or backward is None or not small or pair.source_arguments is not None:
        return faults
    positions = dict(enumerate(pair.gradients))
    dys = [done.dy, second.dy]
    steps = stepwise(forward, backward, inputs, dys, positions, rng, pair.forward_options)
    wrong = [fault.gradient for fault in faults]
    found = explained(steps, wrong, done.arrays, done.y)
    told = " ".join(fault.message for fault in found)
    return [*(fault for fault in faults if f"d{fault.gradient}" not in told), *found]


def _not_linear(pair: Pair, done: Run, fault: Fault, rng: np.random.Generator) -> Fault:
    """An unexplained gradient that does not turn with dy: it depends on dy in another way."""
    if fault.kind != "unknown":
        return fault
    name = fault.gradient
    turned = run(pair, done.arrays, rng, dy=like_nested(done.dy, np.negative))
    if close(turned.gradients[name], -np.asarray(done.gradients[name]), done.dy):
        return fault
    message = f"d{name}: is not linear in dy: for −dy it is not −d{name}"
    return replace(fault, kind="not linear", message=message, confidence=0.9)


def _draw(
    subject: Subject,
    pair: Pair,
    done: Run,
    wrong: tuple[str, ...],
    setup: Setup,
    rng: np.random.Generator,
    *,
    compared: bool,
) -> Draw:
    """What was computed, what is right, and the traces of both backwards where there are trees."""
    right: dict[str, Any] = {}
    tolerances: dict[str, float] = {}
    op_trace = None
    if compared:
        right, op_trace = subject.right(pair, done, setup)
        tolerances = {name: 1e-12 * size_of(right[name]) for name in right}
    else:
        for name in wrong:
            right[name], tolerances[name] = numeric_gradient(pair, done, name, _ELEMENTS, rng)
    own = None if subject.is_ops_own else _readable(pair)
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
