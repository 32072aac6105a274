"""Calls that must not change anything: a second one, and one with a strided cotangent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from handgrad.checking import sample_inputs
from handgrad.checking.report import Fault, TrialRow
from handgrad.checking.trial import (
    TrialFault,
    TrialRun,
    backward,
    close,
    forward,
    forward_on,
    like_nested,
    run,
    same_outputs,
)
from handgrad.forward_backward import ForwardBackward


class Findings(NamedTuple):
    faults: list[Fault]
    remarks: list[Fault]
    trials: list[TrialRow]


#: Calls of forward that must give the same.
_CALLS: Final = 5


def require_repeatable(functions: ForwardBackward, done: TrialRun) -> None:
    """Raise TrialFault where forward does not give the same y for the same inputs."""
    for _ in range(_CALLS):
        y, _ = forward(functions, done.arrays)
        if not same_outputs(y, done.y, rtol=1e-5, atol=1e-9):
            message = (
                "forward is random: it gives another y when it is called again with the same "
                "inputs; allowed: a mask or a seeded generator given to it"
            )
            raise TrialFault(partial(Fault, "", "random", "", message, 1.0, judged=False))


def repeated(functions: ForwardBackward, done: TrialRun, names: Sequence[str]) -> Findings:
    """Nothing has been written to, and a second backward gives the same bits for these names."""
    inputs = {name: np.array(array) for name, array in done.arrays.items()}
    before = {name: array.copy() for name, array in inputs.items()}
    _, cache = forward_on(functions, inputs)
    changed = sample_inputs.written(before, inputs)
    dy = like_nested(done.dy, np.array)
    kept = sample_inputs.kept_arrays(inputs, dy, cache)
    before = {name: array.copy() for name, array in kept.items()}
    gradients = backward(functions, dy, cache)
    changed += [name for name in sample_inputs.written(before, kept) if name not in changed]
    first = {name: np.array(gradients[name]) for name in names}
    remarks: list[Fault] = []
    trials = [TrialRow("read-only inputs", "wrong" if changed else "right", "")]
    try:
        second = backward(functions, like_nested(done.dy, np.array) if changed else dy, cache)
    except TrialFault as found:  # a tape may be used up, as PyTorch's is
        message = f"a second call with the same cache is not possible: {found.fault.message}"
        remarks.append(Fault("", "not repeatable", "", message, 1.0))
        trials.append(TrialRow("backward twice", "does not apply", found.fault.kind))
        second = first
    differing = [
        name
        for name in names
        if not np.array_equal(first[name], np.asarray(second[name]), equal_nan=True)
    ]
    double = [n for n in differing if np.allclose(2.0 * first[n], second[n], rtol=1e-9)]
    others = ", ".join(f"d{name}" for name in differing if name not in double)
    again = f", so that a second call gives another {others}" if others else ""
    faults = [
        Fault("", "written to", name, f"{name} is written to{again}; allowed: reading it", 1.0)
        for name in changed
    ]
    for name in double if changed else differing:
        what = "twice as large: it accumulates" if name in double else "something else"
        message = f"d{name}: a second call of backward with the same cache gives {what}"
        # An object that adds to its own gradients does as PyTorch does; its caller sets them to 0.
        (remarks if name in double and not changed else faults).append(
            Fault(name, "not repeatable", "", message, 1.0)
        )
    if second is not first:
        is_wrong = bool(faults and differing)
        trials.append(TrialRow("backward twice", "wrong" if is_wrong else "right", ""))
    return Findings(faults, remarks, trials)


def other_cotangents(
    functions: ForwardBackward, done: TrialRun, rng: np.random.Generator
) -> Findings:
    """The same values in another layout give the same gradients."""
    faults: list[Fault] = []
    remarks: list[Fault] = []
    trials: list[TrialRow] = []
    part = 1e-9 if functions.takes_float64 else 1e-5
    for situation, dy, values_changed in sample_inputs.cotangents(done.y, done.dy):
        values = dy if values_changed else done.dy
        plain = like_nested(values, lambda array: np.array(array, order="C"))
        try:
            again = run(functions, done.arrays, rng, dy=plain)
            other = run(functions, done.arrays, rng, dy=dy)
        except TrialFault as found:
            fault = found.fault
            message = f"{situation}: {fault.message}"
            remarks.append(replace(fault, message=message, situation=situation))
            trials.append(TrialRow(situation, "does not apply", fault.kind))
            continue
        wrong = [
            name
            for name in functions.gradients
            if not close(other.gradients[name], again.gradients[name], dy, part)
        ]
        for name in wrong:
            message = f"d{name}: wrong for a {situation}; right when dy is contiguous"
            faults.append(Fault(name, "strided cotangent", situation, message, 1.0, situation))
        trials.append(TrialRow(situation, "wrong" if wrong else "right", ""))
    return Findings(faults, remarks, trials)
