"""Expectations over few Gaussian vectors, such as those that two windows of a maximum read.

Each pair of examples has a covariance of its own, and with it values at the points of one lattice,
so that nothing is kept for a whole image. Maxima have kinks: their error falls with the number of
points like that of a lattice for functions that are not smooth, a little faster than 1/√n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.limits.asking import Expectations, Rule
from handgrad.limits.entries import slopes_of, value_of
from handgrad.limits.lattice import Lattice
from handgrad.limits.variables import Function, Variable, behind, entrywise, is_gaussian

#: Gaussian vectors behind one vector, as many as a window of 3 × 3 has; with more, draws that all
#: vectors of an example share take less time.
MOST: Final = 9
#: Values that are held at once.
_VALUES: Final = 1 << 22
#: The part of a variance below which a vector counts as a function of those before it.
_LEAST: Final = 1e-12


def leaves_of(variable: Variable) -> list[Variable]:
    """The Gaussian vectors whose values make those of a vector."""
    return [each for each in behind([variable], entrywise) if is_gaussian(each)]


def are_windows(u: Variable, v: Variable) -> bool:
    """True where few Gaussian vectors, and no batch as a whole, are behind the two."""
    every = behind([u, v], entrywise)
    if any(isinstance(each, Function) and each.over_batch for each in every):
        return False
    return max(len(leaves_of(u)), len(leaves_of(v))) <= MOST


def second_of_windows(moments: Expectations, u: Variable, v: Variable, points: Lattice) -> Rule:
    """E[u v] of every pair of examples."""
    covariance = yield from _covariances(moments, leaves_of(u), leaves_of(v))

    def products(one: _Values, other: _Values) -> Array:
        return np.mean(one.value(u) * other.value(v), axis=1)

    return _over_pairs(moments, u, v, covariance, points, products)


def tangent_of_windows(moments: Expectations, u: Variable, v: Variable, points: Lattice) -> Rule:
    """Σ E[∂u/∂g ∂v/∂g′] times the tangent kernel of g and g′, over the Gaussian vectors."""
    left, right = leaves_of(u), leaves_of(v)
    covariance = yield from _covariances(moments, left, right)

    def products(one: _Values, other: _Values) -> Array:
        slopes, others = one.slopes(u), other.slopes(v)
        rows = [[np.mean(slopes[g] * others[h], axis=1) for h in right] for g in left]
        return np.moveaxis(np.array(rows), 2, 0)

    slopes = _over_pairs(moments, u, v, covariance, points, products)
    total: Any = 0.0
    for i, g in enumerate(left):
        for j, h in enumerate(right):
            total = total + slopes[..., i, j] * (yield moments.ask("tangent", g, h))
    return total


def _covariances(moments: Expectations, left: list[Variable], right: list[Variable]) -> Rule:
    """Of the vectors of both, (*pairs of examples, d, d)."""
    counts = [side.count for side in moments.sides]
    shape = tuple(counts[:1] if moments.is_diagonal else counts)
    size = len(left) + len(right)
    found = np.empty((*shape, size, size))
    both = [(g, 0) for g in left] + [(h, 1) for h in right]
    for i, (g, of_g) in enumerate(both):
        for j, (h, of_h) in enumerate(both[: i + 1]):
            if of_g == of_h:
                value = np.asarray((yield moments.alone[of_g].ask("second", g, h)))
                if value.ndim and not moments.is_diagonal:
                    value = value[:, None] if of_g == 0 else value[None, :]
            else:
                value = np.asarray((yield moments.ask("second", h, g)))
            found[..., i, j] = found[..., j, i] = value
    return found


def _over_pairs(
    moments: Expectations,
    u: Variable,
    v: Variable,
    covariance: Array,
    points: Lattice,
    products: Callable[[_Values, _Values], Array],
) -> Array:
    """`products` of the values of u and v, for all pairs of examples, some at a time."""
    shape, size = covariance.shape[:-2], covariance.shape[-1]
    flat = covariance.reshape(-1, size, size)
    split = len(leaves_of(u))
    places = np.indices(shape).reshape(len(shape), -1)
    of_left, of_right = places[0], places[-1]
    noise = np.stack([points.normals(i) for i in range(size)])
    found: list[tuple[Array, Array]] = []
    for turned in (False, True):
        # The vectors of the same example come first in both orders of a pair, so that the kernel
        # is symmetric.
        order = np.r_[split:size, :split] if turned else np.arange(size)
        chosen = np.flatnonzero(_is_turned(moments, of_left, of_right) == turned)
        for some in _parts(chosen, size * points.count):
            root = _root(flat[some][:, order][:, :, order])
            values = np.empty((size, len(some), points.count))
            values[order] = np.moveaxis(root @ noise, 1, 0)
            one = _Values(values[:split], moments.alone[0], of_left[some], u)
            other = _Values(values[split:], moments.alone[1], of_right[some], v)
            found.append((some, products(one, other)))
    where = np.concatenate([some for some, _ in found])
    whole = np.concatenate([value for _, value in found])[np.argsort(where)]
    return whole.reshape(*shape, *whole.shape[1:])


def _is_turned(moments: Expectations, of_left: Array, of_right: Array) -> Array:
    """True for the pairs whose right example is, as bytes, before the left one."""
    keys = [[x.tobytes() for x in side.x] for side in moments.sides]
    rank = {key: number for number, key in enumerate(sorted({*keys[0], *keys[1]}))}
    ranks = [np.array([rank[key] for key in side], dtype=np.int64) for side in keys]
    return np.asarray(ranks[1][of_right] < ranks[0][of_left])


def _parts(chosen: Array, size: int) -> Iterator[Array]:
    step = max(_VALUES // size, 1)
    for start in range(0, len(chosen), step):
        yield chosen[start : start + step]


def _root(k: Array) -> Array:
    """L with L Lᵀ = k, of every matrix of a stack, also where they are singular."""
    root = np.zeros_like(k)
    for i in range(k.shape[-1]):
        below = k[:, i:, i] - np.einsum("nij,nj->ni", root[:, i:, :i], root[:, i, :i])
        rest = below[:, :1]
        is_new = rest > _LEAST * k[:, i, i][:, None]
        scale = np.sqrt(np.where(is_new, rest, 1.0))
        root[:, i:, i] = np.where(is_new, below / scale, 0.0)
    return root


class _Values:
    """Values of the vectors behind one vector, (pairs, points), for the example of each pair."""

    def __init__(
        self, drawn: Array, alone: Expectations, examples: Array, variable: Variable
    ) -> None:
        self._alone, self._examples = alone, examples
        self._known = dict(zip(leaves_of(variable), drawn, strict=True))

    def _placed(self, factor: Any) -> Any:
        if not callable(factor):
            return factor
        count = self._alone.sides[0].count
        return np.broadcast_to(factor(self._alone), (count,))[self._examples][:, None]

    def value(self, variable: Variable) -> Array:
        for each in behind([variable], entrywise):
            if each not in self._known:
                self._known[each] = value_of(each, self._known, self._placed, np.ones((1, 1)))
        return self._known[variable]

    def slopes(self, variable: Variable) -> dict[Variable, Array]:
        self.value(variable)
        found: dict[Variable, dict[Variable, Array]] = {}
        for each in behind([variable], entrywise):
            found[each] = slopes_of(each, self._known, found, self._placed, np.ones((1, 1)))
        return found[variable]
