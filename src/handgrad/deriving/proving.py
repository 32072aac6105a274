"""Run the derived functions beside the forward, at sizes, values and settings of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

#: Results elsewhere differ by no more than this share of the largest: sizes are rounded otherwise.
_SAME: Final = 1e-8
#: Steps of central differences, of which one has to agree, and by how much they may differ.
_STEPS: Final = (1e-6, 1e-5)
_NEAR: Final = 1e-6

Results = Callable[[dict[str, Any]], list[Any]]


def difference(
    compiled: Mapping[str, Any],
    forward: Results,
    arguments: dict[str, Any],
    own: Sequence[Any],
    wanted: Sequence[str],
    *,
    exact: bool = True,
) -> str:
    """In words where the functions differ from the forward and its differences; "" if nowhere.

    `own` are the forward's results with these arguments; `exact` asks for their bits.
    """
    taken = inspect.signature(compiled["forward"]).parameters
    known = {name: value for name, value in arguments.items() if name in taken}
    rng = np.random.default_rng(3)
    try:
        with np.errstate(all="ignore"):
            y, cache = compiled["forward"](**known)
            ys = [np.asarray(each) for each in flat(y)]
            if not all(_same(a, b, exact) for a, b in zip(ys, own, strict=True)):
                return "the emitted forward has other values than the forward"
            dys = tuple(rng.standard_normal(each.shape) for each in ys)
            found = list(flat(compiled["backward"](dys[0] if len(dys) == 1 else dys, cache)))
    except Exception as error:  # of code that no one wrote
        return f"the emitted code fails with {type(error).__name__}: {error}"
    for name, gradient in zip(wanted, found, strict=True):
        x = np.asarray(arguments[name], float)
        if np.shape(gradient) != x.shape:
            return f"d{name} has shape {np.shape(gradient)}, not {x.shape}"
        way = rng.standard_normal(x.shape)
        along = float(np.sum(gradient * way))
        slopes = []
        for step in _STEPS:
            h = step * max(1.0, float(np.max(np.abs(x), initial=0.0)))
            ends = [forward({**arguments, name: x + s * h * way}) for s in (1, -1)]
            pairs = list(zip(*ends, dys, strict=True))
            slopes.append(sum(float(np.sum((a - b) * dy)) for a, b, dy in pairs) / (2 * h))
            size = sum(float(np.sum(np.abs(a * dy))) for a, _, dy in pairs)
            if abs(slopes[-1] - along) <= _NEAR * (abs(slopes[-1]) + abs(along) + size):
                break
        else:
            return f"d{name} differs from differences of the forward ({along:.6g}, {slopes[0]:.6g})"
    return ""


def other_values(value: Any) -> tuple[Any, ...]:
    """Further values of a setting that is a number; none of one that is a flag or a word."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ()
    if isinstance(value, int):
        return value + 1, value - 1, 2 * value + 2
    return 1.25 * value + 0.1, 0.5 * value + 0.05, value + 1


def flat(result: Any) -> Iterator[Any]:
    """Results one by one, also those in plain tuples, as in (y, (h, c))."""
    if type(result) in (tuple, list):
        for each in result:
            yield from flat(each)
    else:
        yield result


def _same(one: Any, two: Any, exact: bool) -> bool:
    if exact:
        return bool(np.array_equal(one, two, equal_nan=True))
    scale = float(np.max(np.abs(two), initial=0.0)) or 1.0
    return np.shape(one) == np.shape(two) and bool(np.all(np.abs(one - two) <= _SAME * scale))
