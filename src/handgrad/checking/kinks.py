"""Right gradients at a kink, and the effect of rounding on a gradient, both seen from beside.

At an exact 0 of ReLU, at a tie of a maximum or at the norm of a row of zeros the slopes ahead and
behind differ, and any choice between them is right. A choice made inside of forward, before other
steps, need not lie between the slopes of the whole. So the gradient at the kink is set beside those
at points around it: there it has to be right, and along directions in which those agree the
gradient at the point has to agree with them too (values that tie keep their tie where all of them
move alike, so a maximum of equal values has to hand on its cotangent once).

Source: Clarke, Optimization and Nonsmooth Analysis (1983), for the generalised gradient as the hull
of the gradients around; Moré, Wild, Estimating computational noise (2011), for the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, Literal

import numpy as np

from handgrad.checking.trial import (
    TrialFault,
    TrialRun,
    contracted,
    directional_row,
    leaves,
    magnitude,
    run,
)
from handgrad.differences.line import root_mean_square
from handgrad.forward_backward import ForwardBackward

Seen = Literal["kink", "right", "wrong", "undecided"]

#: Distances of the points around, as fractions of the size of the input: at the far ones the
#: gradient is judged, and at the near ones a smooth one has hardly changed.
_FAR: Final = 2.0**-12
_NEAR: Final = 2.0**-20
#: Points around at each distance, in pairs on opposite sides; and how many of them are judged.
_POINTS: Final = 16
_JUDGED: Final = 6
#: A choice may lie so many times the spread of the gradients around outside of them: of many
#: choices at once, a few points around show only some.
_ROOM: Final = 4.0
#: If gradients differ so many times more nearby than far away, forward is no smoother than a
#: logarithm at 0, and the gradients around say nothing of the one at the point.
_SINGULAR: Final = 16.0
#: Relative to the terms of <gradient, direction>, what counts as no difference.
_SAME: Final = 1e-6

#: `noises`: the step, as a fraction of the size of the input, how many, and which
#: differences are looked at, with the factor by which they enlarge noise.
_STEP: Final = 2.0**-22
_STEPS: Final = 7
_ORDER: Final = 4
_ENLARGED: Final = math.sqrt(70.0)
#: A bound is so many times the standard deviation; and no noise excuses more than this part of the
#: terms: what jumps more is a kink.
_DEVIATIONS: Final = 16.0
_MOST: Final = 1e-5
_CANCELLED: Final = 1e-12


def beside(functions: ForwardBackward, done: TrialRun, name: str, rng: np.random.Generator) -> Seen:
    """Judge a gradient by those around the point.

    "kink" is right at a point with a kink, and "right" at one without; "undecided" where forward
    cannot be asked around.
    """
    at_the_point = (*leaves(done.y), np.asarray(done.gradients[name]))
    if not all(np.isfinite(each).all() for each in at_the_point):
        return "undecided"
    # The same ways out at both distances, so that they lead to the same sides of kinks.
    seed = int(rng.integers(2**32))
    far, near = (
        list(_around(functions, done, name, distance, np.random.default_rng(seed)))
        for distance in (_FAR, _NEAR)
    )
    if min(len(far), len(near)) < _JUDGED:
        return "undecided"
    verdicts = [directional_row(functions, each, name, rng).verdict for each in far[:_JUDGED]]
    if verdicts.count("wrong") >= 2:
        return "wrong"
    if verdicts.count("right") < 2:
        return "undecided"
    kinked = False
    for direction in _directions(np.asarray(done.arrays[name]), rng):
        terms = _along(done, name, direction)
        close, wide = (
            np.array([np.sum(_along(each, name, direction)) for each in points])
            for points in (near, far)
        )
        size = max(
            float(np.sqrt(np.sum(_along(each, name, direction) ** 2))) for each in (done, *near)
        )
        spread = float(np.ptp(close))
        spread_far = float(np.ptp(wide))
        if spread > max(_SINGULAR * spread_far, _SAME * size):
            return "undecided"
        is_kink = spread > max(spread_far / 8.0, _SAME * size)
        kinked |= is_kink
        room = _ROOM * (spread if is_kink else spread_far) + _SAME * size
        if not np.min(close) - room <= float(np.sum(terms)) <= np.max(close) + room:
            return "wrong"
    return "kink" if kinked else "right"


def _along(done: TrialRun, name: str, direction: np.ndarray) -> np.ndarray:
    """The terms of <gradient, direction>."""
    return np.asarray(np.asarray(done.gradients[name], dtype=np.float64) * direction)


def _around(
    functions: ForwardBackward, done: TrialRun, name: str, distance: float, rng: np.random.Generator
) -> Iterator[TrialRun]:
    """Runs at points around, in pairs on opposite sides; those that forward takes."""
    array = np.asarray(done.arrays[name], dtype=np.float64)
    finite = np.isfinite(array)
    size = root_mean_square(array[finite]) or 1.0
    for way in _ways(array, rng):
        for side in (1.0, -1.0):
            moved = np.where(finite, array + side * distance * size * way, array)
            try:
                found = run(functions, {**done.arrays, name: moved}, rng, dy=done.dy)
            except TrialFault:
                continue
            gradient = np.asarray(found.gradients[name])
            if gradient.shape == array.shape and np.isfinite(gradient).all():
                yield found


def _ways(array: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Ways out of the point in which every value moves: all of them up, all outwards, and others.

    With the first two, a kink that a common shift or a scaling leads over is seen for certain.
    """
    drawn = [rng.choice((-1.0, 1.0), array.shape) for _ in range(_POINTS // 2 - 1)]
    outwards = np.where(array == 0.0, drawn[0], np.sign(array))
    for signs in (*drawn[1:], outwards, np.ones(array.shape)):
        yield signs * rng.uniform(0.5, 1.0, array.shape)


def _directions(array: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Random ones, and two along which ties and zeros stay: a common shift and a scaling."""
    for _ in range(3):
        yield rng.standard_normal(array.shape)
    yield np.ones(array.shape)
    if np.isfinite(array).all() and np.any(array):
        yield np.asarray(array, dtype=np.float64)


def noises(
    functions: ForwardBackward, done: TrialRun, name: str, direction: np.ndarray
) -> tuple[float, float]:
    """The errors of <y, dy> and <gradient, direction> by rounding alone.

    Fourth differences along a line hold nothing of a smooth function but its noise, whether that
    comes from float64 or from a float32 somewhere inside. Where more than rounding is seen, 0.
    """
    array = np.asarray(done.arrays[name], dtype=np.float64)
    rng = np.random.default_rng(0)
    size = root_mean_square(array[np.isfinite(array)]) or 1.0
    step = _STEP * size * rng.uniform(0.5, 1.0, array.shape)
    values: list[tuple[float, float]] = []
    try:
        for i in range(_STEPS):
            found = run(functions, {**done.arrays, name: array + i * step}, rng, dy=done.dy)
            values.append((contracted(found), float(np.sum(_along(found, name, direction)))))
    except (TrialFault, ValueError, TypeError):
        return 0.0, 0.0
    differences = np.diff(np.array(values), _ORDER, axis=0) / _ENLARGED
    of_y, of_gradient = _DEVIATIONS * np.sqrt(np.mean(differences**2, axis=0))
    terms = float(np.sqrt(np.sum(_along(done, name, direction) ** 2)))
    # If all of y cancels, only the inputs show how large its terms were.
    cancelled = _CANCELLED * _size(done.dy) * max(1.0, _size(tuple(done.arrays.values())))
    most_y = max(_MOST * magnitude(done), cancelled)
    most_gradient = max(_MOST * terms, most_y)
    return (
        float(of_y) if of_y <= most_y else 0.0,
        float(of_gradient) if of_gradient <= most_gradient else 0.0,
    )


def _size(arrays: Any) -> float:
    """The largest magnitude among the floats."""
    finite = (x[np.isfinite(x)] for x in leaves(arrays) if x.dtype.kind == "f")
    return max((float(np.max(np.abs(x), initial=0.0)) for x in finite), default=0.0)
