"""Expectations without a closed form: from draws of the Gaussian vectors' joint distribution.

The Gaussian vectors of a program are drawn in its order, each for all examples at once and given
those before it that come from the same matrices; what is made of them is computed value by value.
So an answer has the error of a mean over `count` draws. Half of the draws are the negatives of the
others, which leaves out odd terms.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.limits.asking import Expectations
from handgrad.limits.batch import batch_second
from handgrad.limits.entries import slopes_of, value_of
from handgrad.limits.variables import (
    Variable,
    Weight,
    behind,
    entrywise,
    is_gaussian,
    weights_of,
)
from handgrad.ops import matmul

#: Added to correlations of 1, so that equal examples do not make a covariance singular: their draws
#: differ by 1e-5 of a deviation.
_JITTER: Final = 1e-10


class _Group:
    """Vectors that hang together, drawn one after another: values = noise · Lᵀ, L Lᵀ = covariance.

    `inverse` is L⁻¹, which grows by a block of rows with each vector.
    """

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.weights: set[Weight] = set()
        self.inverse = np.empty((0, 0))
        self.noise: list[Array] = []

    def draw(self, own: Array, cross: Array, noise: Array) -> Array:
        """Values with covariance `own` (N, N), and `cross` (n, N) with the n values before."""
        rows = cross.T @ self.inverse.T
        size = np.sqrt(np.diag(own))
        size = np.where(size > 0.0, size, 1.0)
        # As correlations, so that a small example is not drowned in the rounding of a large one.
        rest = (own - rows @ rows.T) / np.outer(size, size) + _JITTER * np.eye(len(own))
        root = size[:, None] * np.linalg.cholesky(rest)
        values = noise @ root.T
        if self.noise:
            values += np.concatenate(self.noise, axis=1) @ rows.T
        turned = np.linalg.inv(root)
        known = len(self.inverse)
        grown = np.zeros((known + len(own), known + len(own)))
        grown[:known, :known] = self.inverse
        grown[known:, :known] = -turned @ rows @ self.inverse
        grown[known:, known:] = turned
        self.inverse = grown
        self.noise.append(noise)
        return np.asarray(values)


class Samples:
    """Draws for all examples of one side, at `count` entries of every vector."""

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self.count = count + count % 2
        self.rng = rng
        self._ones = np.ones((self.count, 1))
        self.moments: Expectations
        self._values: dict[Variable, Array] = {}
        self._slopes: dict[Variable, dict[Variable, Array]] = {}
        self._groups: list[_Group] = []
        self._integrals: dict[tuple[Variable, Variable], Array | None] = {}

    def second(self, moments: Expectations, u: Variable, v: Variable) -> Array:
        """E[u v], by an integral where there is one."""
        if (u, v) not in self._integrals:
            self._integrals[u, v] = batch_second(self.moments, u, v)
        exact = self._integrals[u, v]
        if exact is not None:
            return np.diag(exact) if moments.is_diagonal else exact
        return self.product(moments, self.values(u), self.values(v))

    def product(self, moments: Expectations, one: Array, other: Array) -> Array:
        """The mean over the draws, for each pair of examples or each example with itself."""
        if moments.is_diagonal:
            return np.mean(one * other, axis=0)
        products, _ = matmul.forward(np.ascontiguousarray(one.T), other)
        return np.asarray(products) / self.count

    def values(self, variable: Variable) -> Array:
        """The values of a vector at the drawn entries, (count, N) or (count, 1)."""
        for each in behind([variable], entrywise):
            if each not in self._values:
                self._values[each] = self._made(each)
        return self._values[variable]

    def _made(self, variable: Variable) -> Array:
        if is_gaussian(variable):
            return self._drawn(variable)
        return value_of(variable, self._values, self._factor, self._ones)

    def _factor(self, factor: Any) -> Any:
        return factor(self.moments.alone[0]) if callable(factor) else factor

    def _drawn(self, variable: Variable) -> Array:
        """Values of a Gaussian vector for all examples, given those drawn before it."""
        size = self.moments.sides[0].count
        own = np.broadcast_to(self.moments.second(variable, variable), (size, size))
        if not np.any(own):
            return np.zeros((self.count, 1))
        half = self.rng.standard_normal((self.count // 2, size))
        group = self._group(weights_of(variable))
        cross = np.empty((len(group.inverse), size))
        for i, earlier in enumerate(group.variables):
            cross[i * size : (i + 1) * size] = self.moments.second(earlier, variable)
        group.variables.append(variable)
        return group.draw(own, cross, np.concatenate([half, -half]))

    def _group(self, weights: set[Weight]) -> _Group:
        """The group of the vectors that share a matrix with these, a new one where none does."""
        sharing = [group for group in self._groups if group.weights & weights]
        if len(sharing) == 1:
            sharing[0].weights |= weights
            return sharing[0]
        merged = _Group()
        self._groups = [group for group in self._groups if group not in sharing] + [merged]
        merged.weights = weights.union(*(group.weights for group in sharing))
        for group in sharing:  # independent so far, so that L is block-diagonal
            known, more = len(merged.inverse), len(group.inverse)
            grown = np.zeros((known + more, known + more))
            grown[:known, :known], grown[known:, known:] = merged.inverse, group.inverse
            merged.inverse = grown
            merged.variables += group.variables
            merged.noise += group.noise
        return merged

    def slopes(self, variable: Variable) -> dict[Variable, Array]:
        """The derivatives of a vector's values by those of the drawn vectors it is made of."""
        self.values(variable)
        for each in behind([variable], entrywise):
            if each not in self._slopes:
                self._slopes[each] = slopes_of(
                    each, self._values, self._slopes, self._factor, np.ones((self.count, 1))
                )
        return self._slopes[variable]
