"""Hypotheses on a wrong gradient of any op: guesses that need no formula.

A hypothesis is fitted to one draw (one cotangent) and must then predict the gradient of another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, Final

import numpy as np

from handgrad.checking.attempts import Inapplicable
from handgrad.program.text import symbol

Array = np.ndarray


@dataclass(frozen=True)
class Draw:
    """One run with a random cotangent: what backward returned, and what is right.

    `right` may hold NaN where an element was not computed. `tolerances` bounds the error of
    `right`, as an absolute number per gradient.
    """

    arrays: Mapping[str, Array]
    y: Any
    dy: Any
    found: Mapping[str, Any]
    right: Mapping[str, Array]
    tolerances: Mapping[str, float]

    @cached_property
    def sizes(self) -> dict[str, float]:
        """The size of what is known of each gradient."""
        return {
            name: float(np.nanmax(np.abs(right), initial=0.0)) for name, right in self.right.items()
        }

    @cached_property
    def departures(self) -> dict[str, float]:
        """How far each gradient is from what is right; infinite for those of other shapes."""
        return {name: self.apart(name, self.found[name]) for name in self.right}

    def apart(self, name: str, other: Any) -> float:
        """How far an array is from what is right, where that is known; infinite if it cannot be."""
        other, right = np.asarray(other), self.right[name]
        if other.shape != np.shape(right) or other.dtype.kind != "f":
            return math.inf
        found = np.abs(other - right)
        most = float(found.max(initial=0.0))
        if math.isnan(most):
            most = math.inf if np.isnan(other).any() else float(np.nanmax(found, initial=0.0))
        return most

    def agrees(self, name: str, predicted: Any, *, with_found: bool = True) -> bool:
        """Return whether backward gave the prediction (or, if not `with_found`, it is right)."""
        return self.distance(name, predicted, with_found=with_found) <= 1.0

    def distance(self, name: str, predicted: Any, *, with_found: bool = True) -> float:
        """The largest difference as a multiple of what the tolerance allows; infinite if shapes
        differ."""
        expected = np.asarray(self.found[name] if with_found else self.right[name])
        predicted = np.asarray(predicted)
        if predicted.shape != expected.shape or predicted.dtype.kind not in "fiub":
            return math.inf
        known = np.isfinite(expected)
        if not with_found:
            known = ~np.isnan(expected)
        elif np.shape(self.right[name]) == expected.shape:
            known &= ~np.isnan(self.right[name])
        if not np.isfinite(predicted[known]).all():
            return math.inf
        difference = np.abs(predicted[known] - expected[known])
        scale = max(np.abs(expected[known]).max(initial=0.0), 1e-300)
        allowed = max(4.0 * self.tolerances[name], 1e-9 * scale)
        return float(difference.max(initial=0.0) / allowed)


@dataclass(frozen=True)
class Explanation:
    """A cause that reproduces the numbers: `predict` gives what it would have made of a draw.

    `cost` ranks: a simple cause before a contrived one.
    """

    kind: str
    term: str
    phrase: str
    cost: float
    predict: Callable[[Draw], Any] = field(repr=False)


def explains(explanation: Explanation, name: str, draws: tuple[Draw, ...]) -> bool:
    """Return whether the explanation holds on every draw."""
    for draw in draws:
        try:
            predicted = explanation.predict(draw)
        except Inapplicable:
            return False
        if predicted is None or not draw.agrees(name, predicted):
            return False
    return True


def general(name: str, draws: tuple[Draw, ...]) -> Iterator[Iterable[Explanation]]:
    """Every general hypothesis that is worth trying on this gradient, by its kind."""
    draw = draws[0]
    found, right = np.asarray(draw.found[name]), draw.right[name]
    if found.shape == right.shape:
        yield _scaled(name, draw, found, right)
        yield _passed_through(name, draw)
        yield _offset(name, draw, found, right)
        yield _elementwise_factor(name, draw, found, right)
    if found.squeeze().shape == right.squeeze().shape != () and found.shape != right.shape:
        phrase = f"has shape {found.shape}; allowed: {right.shape}, the shape of {name}"
        yield [Explanation("wrong shape", "", phrase, 1.0, _reshaped(name))]
    yield _permuted(name, found, right)
    yield _not_reduced(name, found, right)
    yield _swapped(name, draw)


def _reshaped(name: str) -> Callable[[Draw], Any]:
    """The right values in the shape that was found."""
    return lambda draw: draw.right[name].reshape(np.shape(draw.found[name]))


def _scaled(name: str, draw: Draw, found: Array, right: Array) -> Iterator[Explanation]:
    known = np.isfinite(right) & np.isfinite(found)
    power = float(np.sum(right[known] ** 2))
    if power == 0.0:
        return
    if not np.any(found[known]):
        phrase = "is zero: nothing flows back"

        def zero(d: Draw) -> Any:
            return np.zeros_like(d.found[name])

        yield Explanation("gradient is zero", "", phrase, 1.56, zero)
        return
    factor, (kind, term, phrase, cost) = whole_factor(name, draw, found, right)
    yield Explanation(kind, term, phrase, cost, lambda d: factor * d.right[name])


def whole_factor(
    name: str, draw: Draw, found: Array, right: Array
) -> tuple[float, tuple[str, str, str, float]]:
    """The number that `right` is multiplied by in `found`, which fits best, and its description."""
    known = np.isfinite(right) & np.isfinite(found)
    factor = float(np.sum(found[known] * right[known])) / float(np.sum(right[known] ** 2))
    shapes = {each: np.shape(draw.arrays[each]) for each in draw.arrays}
    nearness = max(_NEAR, 4.0 * draw.tolerances[name] / float(np.max(np.abs(right[known]))))
    return factor, _named_factor(factor, shapes, nearness)


#: The distance that a fitted factor may have from a number with a name.
_NEAR: Final = 1e-6


def _named_factor(
    factor: float, shapes: Mapping[str, tuple[int, ...]], nearness: float
) -> tuple[str, str, str, float]:
    """Kind, term and phrase for a gradient that is `factor` times the right one, and its cost."""
    if _near(factor, -1.0, nearness):
        return "wrong sign", "", "has the wrong sign", 1.15
    for value, text in ((2.0, "twice"), (0.5, "half"), (-2.0, "−2 times"), (-0.5, "−½ times")):
        if _near(factor, value, nearness):
            return "scaled", "", f"is {text} what it should be", 1.5
    for size, where in _sizes(shapes):
        root = math.sqrt(size)
        for value, kind, term, times, cause in (
            (size, "sum for mean", "", f"{size} times", "a sum stands where a mean belongs"),
            (1.0 / size, "mean for sum", "", f"1/{size} of", "a mean stands where a sum belongs"),
            (
                root,
                "scale missing",
                f"1/√{size}",
                f"√{size} times",
                f"the factor 1/√{size} is missing",
            ),
            (
                1.0 / root,
                "extra factor",
                f"1/√{size}",
                f"1/√{size} of",
                "it is scaled once too often",
            ),
        ):
            if _near(factor, value, nearness):
                phrase = f"is {times} what it should be: {cause} ({size} is {where})"
                return kind, term, phrase, 1.6
    return "scaled", "", f"is {factor:.6g} times what it should be", 3.0


def _near(factor: float, value: float, nearness: float) -> bool:
    return abs(factor - value) < nearness * abs(value)


def _sizes(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[int, str]]:
    """Numbers that a sum or a scale could be over: sizes of axes first, then of whole arrays."""
    for name, shape in shapes.items():
        for axis, size in enumerate(shape):
            if size > 1:
                yield size, f"the size of axis {axis} of {name}"
    for name, shape in shapes.items():
        if math.prod(shape) > 1:
            yield math.prod(shape), f"the number of values of {name}"


def _passed_through(name: str, draw: Draw) -> Iterator[Explanation]:
    if isinstance(draw.dy, np.ndarray) and draw.dy.shape == np.shape(draw.found[name]):
        phrase = "is the cotangent itself: it is not multiplied by the derivative"
        yield Explanation("activation derivative forgotten", "", phrase, 2.0, lambda d: d.dy)


def _permuted(name: str, found: Array, right: Array) -> Iterator[Explanation]:
    if not 2 <= right.ndim <= 5:
        return
    for order in permutations(range(right.ndim)):
        if order == tuple(range(right.ndim)):
            continue
        if tuple(right.shape[axis] for axis in order) == found.shape:
            turned = right.ndim == 2
            phrase = "is transposed" if turned else f"has its axes in the order {order}"
            yield Explanation(
                "transposed" if turned else "axes permuted",
                "",
                phrase,
                1.5,
                lambda d, order=order: np.transpose(d.right[name], order),  # type: ignore[misc]
            )


def _not_reduced(name: str, found: Array, right: Array) -> Iterator[Explanation]:
    """The gradient before the sum over the axes along which the input was broadcast."""
    if found.ndim < right.ndim or found.shape == right.shape:
        return
    for count in range(1, found.ndim + 1):
        for axes in combinations(range(found.ndim), count):
            summed = found.sum(axis=axes, keepdims=True)
            if summed.size != right.size:
                continue
            listed = ", ".join(map(str, axes))
            phrase = f"is not summed over axis {listed}, along which {name} was broadcast"

            def repeat(d: Draw, axes: tuple[int, ...] = axes) -> Any:
                total = np.asarray(d.found[name]).sum(axis=axes, keepdims=True)
                good = d.agrees(name, total.reshape(d.right[name].shape), with_found=False)
                return d.found[name] if good else None

            yield Explanation("not reduced", "", phrase, 1.3, repeat)


def _swapped(name: str, draw: Draw) -> Iterator[Explanation]:
    for other, right in draw.right.items():
        if other == name or right.shape != np.shape(draw.found[name]):
            continue
        if draw.agrees(other, draw.right[name]):
            phrase = f"is the gradient of {other}: the two come back in each other's place"
            kind, term, cost = (
                "gradients swapped",
                f"{symbol('d' + name)} and {symbol('d' + other)}",
                1.1,
            )
        else:
            phrase = f"is the gradient of {other}"
            kind, term, cost = "stale variable", f"d{other} for d{name}", 1.6

        def swap(d: Draw, other: str = other) -> Any:
            return d.right[other]

        yield Explanation(kind, term, phrase, cost, swap)


def _pool(draw: Draw) -> Iterator[tuple[str, Callable[[Draw], Any]]]:
    """Arrays that could be added by mistake, by name; of several outputs none."""
    for name in draw.arrays:
        yield name, lambda d, name=name: d.arrays[name]  # type: ignore[misc]
    if not isinstance(draw.y, tuple | list):
        yield "dy", lambda d: d.dy
        yield "y", lambda d: d.y
    yield "a constant", lambda d: 1.0


def _offset(name: str, draw: Draw, found: Array, right: Array) -> Iterator[Explanation]:
    """found = right + c · (an array that is at hand)."""
    error = found - right
    known = np.isfinite(error)
    for other, value in _pool(draw):
        extra = value(draw)
        if not isinstance(extra, float) and np.shape(extra) != right.shape:
            continue
        extra = np.broadcast_to(np.asarray(extra, dtype=np.float64), right.shape)
        power = float(np.sum(extra[known] ** 2))
        if power == 0.0:
            continue
        factor = float(np.sum(error[known] * extra[known])) / power
        if factor == 0.0:
            continue
        text = f"{'−' if factor < 0 else ''}{abs(factor):.4g} · {other}"
        phrase = f"has the extra term {text}"
        yield Explanation(
            "extra term",
            text,
            phrase,
            2.0,
            lambda d, value=value, factor=factor: d.right[name] + factor * value(d),  # type: ignore[misc]
        )


def _elementwise_factor(name: str, draw: Draw, found: Array, right: Array) -> Iterator[Explanation]:
    """found = right · f(A) or right / f(A), element by element, for an array A at hand."""
    for other, value in _pool(draw):
        shape = np.shape(value(draw))
        if other == "dy" or shape == () or not _broadcasts(shape, right.shape):
            continue
        for label, slope in _slopes(other):

            def missing(d: Draw, value: Any = value, slope: Any = slope) -> Any:
                return d.right[name] / slope(value(d))

            def extra(d: Draw, value: Any = value, slope: Any = slope) -> Any:
                return d.right[name] * slope(value(d))

            yield Explanation("factor missing", label, f"lacks the factor {label}", 2.1, missing)
            phrase = f"has the factor {label} once too often"
            yield Explanation("extra factor", label, phrase, 2.1, extra)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def _slopes(name: str) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """An array itself, and the derivatives that are written in an output of that name."""
    yield name, lambda a: a
    yield f"{name} (1 − {name})", lambda a: a * (1.0 - a)
    yield f"1 − {name}²", lambda a: 1.0 - a * a
    yield f"1 − {name}", lambda a: 1.0 - a
