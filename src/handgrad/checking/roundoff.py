"""The distance of a float32 gradient from float64: bounds that come from its own computation.

`bound_of_backward` runs a forward and a backward on arrays that keep beside every value in float64
how far it may be off where every step is rounded to a smaller unit; what a step adds stands in
`rounding`. So the bound of a gradient follows from the operations that made it, their number and
their condition; where terms cancel it stays as large as they were. `perturbed_bound` is an estimate
for functions that cannot take such arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.checking.rounding.bounded import Bounded, closed
from handgrad.checking.rounding.model import Arithmetic, Unbounded
from handgrad.dispatch import engine
from handgrad.errors import ArgumentError

__all__ = ["FLOAT32_UNIT", "Bounded", "Unbounded", "bound_of_backward", "perturbed_bound"]

#: A bound is so many times what the rules give. They follow one way to write a formula; others fuse
#: multiply and add, multiply by 1/n instead of dividing by n, or take a sum in other pieces, which
#: makes about as many roundings again at the most.
VARIANTS: Final = 2.0

#: `perturbed_bound`: how many runs, and how many roundings no sum is needed for.
_PERTURBATIONS: Final = 4
_CHAIN: Final = 32.0

FLOAT32_UNIT: Final = 2.0**-24
#: By unit roundoff: bfloat16, float16, float32 and float64.
_ARITHMETICS: Final = {
    unit: Arithmetic(unit, 2.0**lowest, 2.0**highest * (1 - unit))
    for unit, lowest, highest in (
        (2.0**-8, -126, 128),
        (2.0**-11, -14, 16),
        (FLOAT32_UNIT, -126, 128),
        (2.0**-53, -1022, 1023),
    )
}
Forward = Callable[..., tuple[Any, Any]]
Backward = Callable[[Any, Any], Any]
Gradients = tuple[tuple[Array, Array] | None, ...]


def bound_of_backward(
    forward: Forward,
    backward: Backward,
    arrays: Sequence[Any],
    dy: Any,
    unit: float = FLOAT32_UNIT,
) -> Gradients | None:
    """Every gradient in float64, and how far a computation with roundoff `unit` may be from it.

    Runs `forward(*arrays)` and `backward(dy, cache)` on Bounded arrays, as references where ops are
    called. The float arrays and dy, an array or nested tuples of them, are rounded to the unit
    first and then count as exact. A gradient that is None gives None.

    None where the functions cannot take such arrays. Raises ArgumentError for a unit that no known
    format has.
    """
    arithmetic = _arithmetic(unit)
    inputs, dy = _bounded(_exact((tuple(arrays), dy), arithmetic), arithmetic)
    try:
        with engine("reference"), np.errstate(all="ignore"):
            _, cache = forward(*inputs)
            gradients = backward(dy, cache)
    except Exception:  # a stranger's function, given arrays that it was not written for
        return None
    if not isinstance(gradients, (tuple, list)):
        gradients = (gradients,)
    found: list[tuple[Array, Array] | None] = []
    for gradient in gradients:
        bounded = closed(gradient, arithmetic)
        if bounded is not None and not isinstance(bounded, Bounded):
            return None
        found.append(None if bounded is None else (bounded.value, VARIANTS * bounded.error))
    return tuple(found)


def perturbed_bound(
    forward: Forward,
    backward: Backward,
    arrays: Sequence[Any],
    dy: Any,
    unit: float = FLOAT32_UNIT,
    *,
    seed: int = 0,
) -> Gradients:
    """Every gradient in float64, and an estimate of how far roundoff `unit` may lead from it.

    For functions that take no Bounded arrays. A rounding acts like a relative change of a value by
    at most u (backward stability). So the inputs, dy and what forward keeps in its cache are
    changed by ±u, in one run with one sign for a whole array and in others with a sign for every
    element, and the largest change of a gradient, in float64, is what one rounding of everything
    does. It counts as often as there are roundings in a row: `_CHAIN` for the functions of a
    formula, and √n for sums of n terms, whose roundings add up like a random walk; n is at most the
    size of the largest array. A gradient whose terms cancel whatever they are does not answer to
    that, so the change is taken to be at least u times the largest of the gradient and of dy, the
    latter divided among the elements where there are more of them than in dy.

    What the functions raise is passed on. Raises ArgumentError for a unit that no known format has.
    Source: Higham, Mary, A new approach to probabilistic rounding error analysis (2019), for √n.
    """
    arithmetic = _arithmetic(unit)
    rng = np.random.default_rng(seed)
    inputs, dy = _exact((tuple(arrays), dy), arithmetic)

    def gradients(change: Callable[[Any], Any]) -> tuple[Any, ...]:
        with engine("reference"), np.errstate(all="ignore"):
            _, cache = forward(*change(inputs))
            found = backward(change(dy), change(cache))
        several = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(None if each is None else np.asarray(each) for each in several)

    def whole(x: Any) -> Any:
        return _changed(x, lambda array: array * (1.0 + unit * rng.choice((-1.0, 1.0))))

    def single(x: Any) -> Any:
        return _changed(
            x, lambda array: array * (1.0 + unit * rng.choice((-1.0, 1.0), array.shape))
        )

    right = gradients(lambda x: x)
    changed = [gradients(whole), *(gradients(single) for _ in range(_PERTURBATIONS))]
    dy_size, dy_largest = _extent(dy)
    roundings = _CHAIN + math.sqrt(max(dy_size, *(_extent(array)[0] for array in inputs)))
    bounds: list[tuple[Array, Array] | None] = []
    for i, gradient in enumerate(right):
        if gradient is None:
            bounds.append(None)
            continue
        change = np.max([np.abs(other[i] - gradient) for other in changed], axis=0)
        share = dy_largest * min(1.0, dy_size / max(gradient.size, 1))
        least = unit * max(share, float(np.max(np.abs(gradient), initial=0.0)))
        bounds.append((gradient, roundings * np.maximum(change, least)))
    return tuple(bounds)


def _arithmetic(unit: float) -> Arithmetic:
    if unit not in _ARITHMETICS:
        allowed = ", ".join(str(known) for known in _ARITHMETICS)
        raise ArgumentError(f"rounding errors: unit is {unit!r}; allowed: {allowed}")
    return _ARITHMETICS[unit]


def _is_float(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.floating)) and x.dtype.kind == "f"


def _changed(x: Any, change: Callable[[Array], Any]) -> Any:
    """x with `change` of every array of floats, in tuples, lists and dictionaries too.

    Dictionaries and lists stay the objects that they are, for others may hold the same.
    """
    if isinstance(x, dict):
        x.update({key: _changed(each, change) for key, each in x.items()})
        return x
    if isinstance(x, list):
        x[:] = [_changed(each, change) for each in x]
        return x
    if isinstance(x, tuple):
        parts = [_changed(part, change) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return change(x) if _is_float(x) else x


def _exact(x: Any, arithmetic: Arithmetic) -> Any:
    """Arrays of floats in float64, rounded to the arithmetic."""
    return _changed(x, lambda array: arithmetic.rounded(np.array(array, dtype=np.float64)))


def _bounded(x: Any, arithmetic: Arithmetic) -> Any:
    """The same as Bounded arrays without an error."""
    return _changed(x, lambda array: Bounded(array, np.zeros(array.shape), arithmetic))


def _extent(x: Any) -> tuple[int, float]:
    """The number of elements in the arrays of floats, and their largest magnitude."""
    if isinstance(x, tuple):
        extents = [_extent(part) for part in x] or [(0, 0.0)]
        return sum(size for size, _ in extents), max(largest for _, largest in extents)
    return (x.size, float(np.max(np.abs(x), initial=0.0))) if _is_float(x) else (0, 0.0)
