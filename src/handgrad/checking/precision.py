"""float32, judged against float64 at the same inputs with a bound that rounding explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.checking.report import Fault, GradientRow
from handgrad.checking.roundoff import Gradients, bound_of_backward, perturbed_bound
from handgrad.checking.trial import (
    TrialFault,
    TrialRun,
    leaves,
    like_nested,
    malformed,
    other_types,
    raised,
    run,
)
from handgrad.default_type import default_type
from handgrad.dispatch import engine
from handgrad.forward_backward import ForwardBackward

#: The multiple of the condition of the problem above which an error is the computation's,
#: and how large it must be to matter.
_LOST: Final = 16.0
_SEEN: Final = 1e-4

#: Half the distance from 1 to the next float32.
UNIT: Final = 2.0**-24

COUNTED: Final = "float32: a count of its operations"
PERTURBED: Final = "float32: how float64 answers to rounding of the inputs"


class Found(NamedTuple):
    faults: list[Fault]
    remarks: list[Fault]
    rows: list[GradientRow]
    #: False where there was no float32 to judge.
    applies: bool = True


def precision_faults(
    functions: ForwardBackward, arrays: Mapping[str, np.ndarray], rng: np.random.Generator
) -> Found:
    """The run in float32: no further from float64 than the bound; other types are remarks."""
    if not functions.takes_float64:
        return Found([], [], [], applies=False)  # it has been judged in float32 all along
    narrow = {name: _float32(array) for name, array in arrays.items()}
    try:
        with default_type("float32"):
            done = run(functions, narrow, rng)
    except TrialFault as refused:
        return Found([], [_in_float32(refused.fault)], [], applies=False)
    for y in leaves(done.y):
        if y.dtype == np.float64:
            message = "forward gives y in float64 where its inputs are float32"
            remark = _in_float32(Fault("", "wrong type", "", message, 1.0))
            return Found([], [remark], [], applies=False)
    remarks = [_in_float32(each) for each in other_types(done)]
    faults = [_in_float32(each) for each in malformed(functions, done)]
    if faults:
        return Found(faults, remarks, [])
    try:
        values, method = bounds(functions, narrow, done.dy, UNIT)
    except Exception as ended:  # inputs beside the given ones are none that the target takes
        return Found([], [_in_float32(raised("forward or backward", ended))], [], applies=False)
    rows = []
    for name, counted in zip(functions.gradients, values, strict=True):
        if counted is None:
            continue
        right, bound = counted
        found = np.asarray(done.gradients[name], dtype=np.float64)
        error = np.abs(found - right)
        excess = error > bound
        worst = np.unravel_index(np.argmax(error - bound), error.shape) if error.size else ()
        scale = float(np.max(np.abs(right), initial=0.0)) or 1.0
        row = GradientRow(
            name,
            float(error[worst] / scale) if error.size else 0.0,
            float(np.asarray(bound)[worst] / scale) if error.size else 0.0,
            "wrong" if excess.any() else "right",
            method,
        )
        rows.append(row)
        if excess.any():
            message = (
                f"d{name}: in float32 off by {error[worst]:.2g} at {tuple(map(int, worst))}, "
                f"{int(excess.sum())} of {excess.size} elements beyond what rounding explains"
            )
            faults.append(Fault(name, "inaccurate", "", message, 0.9, "float32"))
    if method == COUNTED and not faults:
        faults = _lost_digits(
            functions, narrow, done, dict(zip(functions.gradients, values, strict=True))
        )
    return Found(faults, remarks, rows)


def _in_float32(fault: Fault) -> Fault:
    return replace(fault, message=f"in float32: {fault.message}", situation="float32")


def _lost_digits(
    functions: ForwardBackward,
    arrays: Mapping[str, np.ndarray],
    done: TrialRun,
    counted: Mapping[str, Any],
) -> list[Fault]:
    """Errors that the target's own steps explain, but no rounding of what goes in: cancellation.

    A gradient that is not more than rounding in float64 either, such as that of a bias of the keys
    of an attention, is 0 in theory and has no digits to lose.
    """
    faults = []
    try:
        values = perturbed(functions, arrays, done.dy, UNIT)
    except Exception:  # inputs or a cache beside the given ones are none that the target takes
        return []
    for name, known in zip(functions.gradients, values, strict=True):
        if known is None:
            continue
        right, bound = known
        rounding = np.asarray(counted[name][1]) * 2.0**-29
        if not np.any(np.abs(right) > _LOST * rounding):
            continue
        error = np.abs(np.asarray(done.gradients[name], dtype=np.float64) - right)
        size = float(np.max(np.abs(right), initial=0.0))
        if np.any(error > _LOST * bound) and float(np.max(error, initial=0.0)) > _SEEN * size:
            message = (
                f"d{name}: in float32 off by {np.max(error) / size:.1g} of its size, where "
                f"rounding of the inputs explains {np.max(bound) / size:.1g}: a difference cancels"
            )
            faults.append(Fault(name, "inaccurate", "", message, 0.9, "float32"))
    return faults


def _float32(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if np.asarray(array).dtype.kind == "f" else np.array(array)


def bounds(
    functions: ForwardBackward, arrays: Mapping[str, np.ndarray], dy: Any, unit: float
) -> tuple[Gradients, str]:
    """Per gradient its float64 value and what rounding to `unit` explains; and the method."""
    wide = [_float64(arrays[name]) for name in functions.inputs]
    dy = like_nested(dy, _float64)
    with engine("reference"):
        counted = bound_of_backward(functions.forward, functions.backward, wide, dy, unit=unit)
        if counted is not None:
            return counted, COUNTED
    return perturbed(functions, arrays, dy, unit), PERTURBED


def perturbed(
    functions: ForwardBackward, arrays: Mapping[str, np.ndarray], dy: Any, unit: float
) -> Gradients:
    """Per gradient its float64 value and what changes of everything by one rounding make of it."""
    wide = [_float64(arrays[name]) for name in functions.inputs]
    dy = like_nested(dy, _float64)
    return perturbed_bound(functions.forward, functions.backward, wide, dy, unit=unit)


def _float64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype.kind == "f" else array
