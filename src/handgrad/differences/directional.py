"""Derivatives by differences, each with an upper estimate of its own error.

A central difference of step h is wrong in two ways. Truncation, h² f‴/6 and beyond, shrinks with h;
it is seen in how values of several steps disagree. Rounding, (error of one value of f)/h, grows as
h shrinks; it is seen in second differences of tiny steps, which for a smooth f hold nothing else.
So steps are not given but found: f is taken at three large steps, extrapolated to h = 0, and at one
tiny step, and the value of least estimated error is kept.

Where f has a kink within the step (ReLU, max-pooling), the slopes ahead and behind differ, and the
central difference, their mean, is off by at most half of that. Then smaller steps are tried until
no kink lies within. A kink at the point itself stays at every step, and the value says so.

Source: Ridders, Accurate computation of F′(x) and F′(x)F″(x) (1982), for the extrapolation; Moré,
Wild, Estimating derivatives of noisy simulations (2012), for the rounding seen in differences;
Squire, Trapp, Using complex variables to estimate derivatives of real functions (1998).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.differences.line import Difference, LineRestriction, Point, Scalar, root_mean_square
from handgrad.dispatch import engine
from handgrad.dispatch.signature import taking_complex
from handgrad.errors import ArgumentError

CENTRAL: Final = "central differences"
COMPLEX: Final = "complex step"
KINK: Final = "one-sided, at a kink"
UNMOVED: Final = "the direction is zero"
NOT_FINITE: Final = "not finite"

#: A bound is so many times the estimated error: the estimates are differences of two or three
#: values, and by accident two of them can be closer to each other than to the truth.
SAFETY: Final = 4.0
_ROUNDING: Final = float(np.finfo(np.float64).eps)
#: Rounding error of one value of f, in units of |f|, where none is given or seen.
_EPSILON: Final = 4.0 * _ROUNDING
#: Steps, as fractions of the size of the point: powers of two, so that they are exact.
_LARGE: Final = 2.0**-6
_TINY: Final = 2.0**-23
#: The factor between the first steps and the next ones, larger or smaller.
_UP: Final = 2.0**10
_DOWN: Final = 2.0**-7
_MOST_UP: Final = 2
_MOST_DOWN: Final = 4
#: No further step is tried once the estimated error is below this fraction of the value.
_GOOD: Final = 2.0**-22
#: Values that disagree by so many times their rounding do so by truncation.
_CLEARLY: Final = 64.0
#: `elementwise`: its larger step; the truncation that it accepts, as a fraction of the value; and
#: the step at which the rounding of f is listened to, and at how many elements.
_MIDDLE: Final = 2.0**-10
_SMOOTH: Final = 2.0**-20
_JITTER: Final = 2.0**-40
_LISTENED: Final = 4
#: Imaginary steps; by how much their values differ shows the rounding.
_COMPLEX_STEP: Final = 2.0**-80
_COMPLEX_PARTS: Final = (1.0, 0.83, 0.61)


class Derivative(NamedTuple):
    """A derivative, an upper estimate of its absolute error, how it was made, and the last step.

    `method` is one of CENTRAL, COMPLEX, KINK, UNMOVED (value and bound 0) and NOT_FINITE (value
    NaN, bound ∞). Of KINK the value is the mean of the two slopes, and the bound covers both with
    room; but where many kinks meet in one point, what a convention makes of them can lie outside.
    """

    value: float
    bound: float
    method: str
    step: float


class _Estimate(NamedTuple):
    value: float
    truncation: float
    rounding: float
    step: float

    @property
    def error(self) -> float:
        error = self.truncation + self.rounding
        return error if math.isfinite(self.value) and math.isfinite(error) else math.inf


def directional(
    f: Scalar, point: Point, direction: Mapping[str, Array], *, noise: float | None = None
) -> Derivative:
    """The derivative of the scalar f at `point` along `direction`.

    f takes a dictionary of float64 arrays, such as a forward whose output is contracted with a
    fixed cotangent. `direction` has arrays for some of the names; what it leaves out stays where it
    is. `noise` is the rounding error of one value of f where the caller knows more about it than
    that it is some units of |f|, as where f is a sum of many terms that cancel. It is needed where
    f computes in less than float64.

    f is called nine times where it is smooth, eleven or thirteen with kinks within the usual steps,
    and more where its scale is far from that of the point or the derivative is nearly 0. What f
    raises is passed on.
    """
    if not any(np.any(array) for array in direction.values()):
        return Derivative(0.0, 0.0, UNMOVED, 0.0)
    return _search(LineRestriction(f, point, direction), noise or 0.0)


def _search(line: LineRestriction, noise: float) -> Derivative:
    if not math.isfinite(line.middle):
        return Derivative(math.nan, math.inf, NOT_FINITE, 0.0)
    near = line.difference(line.length * _TINY)
    close = _close(line, near, noise, abs(near.slope))
    wide = _wide(line, line.length * _LARGE, near, noise)
    for _ in range(_MOST_UP):
        is_truncated = wide.truncation > _CLEARLY * wide.rounding
        if _is_good(wide) or is_truncated or not _agree(wide, close):
            break
        wider = _wide(line, wide.step * _UP, near, noise)
        wide = min(wide, wider, key=_error)
    if _is_good(wide):
        # No kink hides from three steps; what a tiny step says instead is rounding not yet seen.
        unseen = 0.0 if _agree(wide, close) else abs(wide.value - close.value)
        return Derivative(wide.value, SAFETY * wide.error + unseen, CENTRAL, wide.step)

    reach = 2.0 * max(abs(near.slope), abs(line.with_random_signs().difference(near.step).slope))
    close = _close(line, near, noise, reach)
    kinked = False
    for _ in range(_MOST_DOWN):
        if _is_good(close) or close.truncation < close.rounding:
            break
        before, near = near, line.difference(near.step * _DOWN)
        closer = _close(line, near, noise, reach)
        close = min(close, closer, key=_error)
        # A bend by curvature shrinks with the step, one by rounding grows, and one by a kink stays.
        stays = 0.5 * abs(before.bend) < abs(near.bend) < 2.0 * abs(before.bend)
        kinked = stays and closer.truncation > SAFETY * closer.rounding
        if abs(near.bend) >= 0.5 * abs(before.bend):
            break
    best = min([close, wide] if _agree(wide, close) else [close], key=_error)
    if best.error == math.inf:
        return Derivative(math.nan, math.inf, NOT_FINITE, 0.0)
    return Derivative(best.value, SAFETY * best.error, KINK if kinked else CENTRAL, best.step)


def _error(estimate: _Estimate) -> float:
    return estimate.error


def _is_good(estimate: _Estimate) -> bool:
    """Return whether no other step is needed: also where f does not depend on the step at all."""
    still = estimate.value == 0.0 and estimate.truncation == 0.0
    return still or estimate.error <= _GOOD * abs(estimate.value)


def _agree(one: _Estimate, other: _Estimate) -> bool:
    return abs(one.value - other.value) <= SAFETY * (one.error + other.error)


def _close(line: LineRestriction, near: Difference, noise: float, reach: float) -> _Estimate:
    """One tiny step: off by half of what the one-sided slopes differ by, curvature or kink.

    `reach` is how large a derivative can be along directions like this one: every element of the
    point is rounded where it steps to, which turns the direction a little.
    """
    turned = _ROUNDING * line.longest / near.step * reach
    rounding = max(noise, _EPSILON * near.size) / near.step + turned
    return _Estimate(near.slope, 0.5 * abs(near.bend), rounding, near.step)


def _wide(line: LineRestriction, step: float, tiny: Difference, noise: float) -> _Estimate:
    """Three steps, each half of the one before, extrapolated to none."""
    large, middle, small = (line.difference(step / shrunk) for shrunk in (1, 2, 4))
    first, second, third = large.slope, middle.slope, small.slope
    twice = (4 * second - first) / 3, (4 * third - second) / 3
    thrice = (16 * twice[1] - twice[0]) / 15
    value, truncation = min(
        (third, abs(third - second)),
        (twice[1], max(abs(twice[1] - third), abs(twice[1] - second))),
        (thrice, max(abs(thrice - twice[1]), abs(thrice - twice[0]))),
        key=lambda found: found[1],
    )
    # The bends of a smooth f are an odd polynomial of the step; their limit is that of a kink.
    kink = (large.bend - 10 * middle.bend + 16 * small.bend) / 7
    curvature = (4 * small.bend / small.step - middle.bend / middle.step) / 3
    seen = abs(tiny.bend - curvature * tiny.step) * tiny.step
    size = max(large.size, middle.size, small.size)
    rounding = max(noise, _EPSILON * size, seen) / small.step
    return _Estimate(value, truncation + 0.5 * abs(kink), rounding, step)


def elementwise(
    f: Scalar,
    point: Point,
    name: str,
    *,
    positions: Sequence[int] | None = None,
    noise: float | None = None,
    limit: int = 4096,
) -> tuple[Array, Array]:
    """The gradient of the scalar f with respect to `point[name]`, and upper bounds of its errors.

    f is called four times for every element, and more often where an element is near a kink. With
    `positions`, numbers of elements in row-major order, only these are computed; elsewhere the
    gradient is NaN and the bound ∞.

    Shapes: both of the shape of `point[name]`.
    Raises ArgumentError for more than `limit` elements.
    """
    x = np.asarray(point[name], dtype=np.float64)
    wanted = range(x.size) if positions is None else positions
    if len(wanted) > limit:
        raise ArgumentError(
            f"elementwise: {name} has {len(wanted)} elements to differentiate by; "
            f"allowed: up to {limit}, or fewer positions"
        )
    gradient, bound = np.full(x.size, np.nan), np.full(x.size, np.inf)
    size = root_mean_square(x[np.isfinite(x)]) or 1.0
    noise = noise or 0.0
    middle = None
    for count, position in enumerate(wanted):
        unit = np.zeros(x.size)
        unit[position] = 1.0
        line = LineRestriction(f, point, {name: unit.reshape(x.shape)}, middle, size)
        middle = line.middle
        if count < _LISTENED:
            tiny = line.difference(size * _JITTER)
            noise = max(noise, abs(tiny.bend) * tiny.step)
        gradient[position], bound[position] = _element(line, noise)[:2]
    return gradient.reshape(x.shape), bound.reshape(x.shape)


def _element(line: LineRestriction, noise: float) -> Derivative:
    """Two steps, one half of the other, where they show neither a kink nor much truncation."""
    first = line.difference(line.length * _MIDDLE)
    second = line.difference(first.step / 2)
    value = (4 * second.slope - first.slope) / 3
    kink = 2 * second.bend - first.bend
    truncation = abs(value - second.slope) + 0.5 * abs(kink)
    rounding = max(noise, _EPSILON * first.size) / second.step
    if truncation > max(_SMOOTH * abs(value), rounding) or not math.isfinite(value):
        return _search(line, noise)
    return Derivative(value, SAFETY * (truncation + rounding), CENTRAL, second.step)


def complex_step(
    f: Callable[[dict[str, Array]], Any],
    point: Point,
    direction: Mapping[str, Array],
    *,
    central: Derivative | None = None,
) -> Derivative | None:
    """The derivative along `direction` by an imaginary step, in which nothing cancels.

    f takes complex arrays, and contracts with the cotangent without conjugating. None where that
    does not give the derivative: f raises or drops the imaginary part, its result is real, or it
    disagrees with `central`, which is computed if it is not given.
    """
    if central is None:
        central = directional(lambda moved: float(np.real(f(moved))), point, direction)
    line = LineRestriction(lambda moved: float(np.real(f(moved))), point, direction)
    values = []
    for part in _COMPLEX_PARTS:
        step = line.length * _COMPLEX_STEP * part
        value = _imaginary(f, line, step)
        if value is None:
            return None
        values.append(value / step)
    value = float(np.mean(values))
    spread = max(values) - min(values)
    bound = SAFETY * (2 * spread + _EPSILON * abs(value))
    if not abs(value - central.value) <= central.bound + bound:
        return None
    return Derivative(value, bound, COMPLEX, line.length * _COMPLEX_STEP)


def _imaginary(
    f: Callable[[dict[str, Array]], Any], line: LineRestriction, step: float
) -> float | None:
    """The imaginary part of f at an imaginary step; None if f cannot be asked for it."""
    moved = dict(line.point)
    for name, array in line.direction.items():
        moved[name] = np.asarray(line.point[name] + 1j * step * array)
    try:
        with (
            np.errstate(all="ignore"),
            warnings.catch_warnings(),
            engine("reference"),
            taking_complex(),
        ):
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            result = f(moved)
    except Exception:  # whatever a stranger's function raises, it takes no complex arrays
        return None
    return float(np.imag(result)) if np.iscomplexobj(result) else None
