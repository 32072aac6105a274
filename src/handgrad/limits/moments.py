"""Expectations of products of a program's vectors, and the tangent kernel, each from its operands.

E[u v] for a matrix times a vector is the variance of the matrix times E[h h′] of the vectors that
it is applied to, and 0 for different matrices, which are independent; for a function of Gaussian
vectors it is its V-transform. Only pairs that the answer needs are computed: a network whose
positions never mix, such as a convolution before a flattening, needs no pair of two of them.

The tangent kernel follows the same rules: a matrix contributes what its own gradient gives beside
what comes through the vector. Weights are their standard deviation times a standard normal
parameter, with respect to which the gradient is taken.

Source: Yang, Tensor programs I: wide feedforward or recurrent neural networks of any architecture
are Gaussian processes (2019), theorem 5.4; Yang, Tensor programs II: neural tangent kernel for any
architecture (2020), section 7; Jacot, Gabriel, Hongler, Neural tangent kernel: convergence and
generalization in neural networks (2018).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.limits.asking import Ask, Rule
from handgrad.limits.gates import (
    Gates,
    are_mixtures,
    are_separate,
    mean_of_mixture,
    second_given_gates,
    second_of_mixtures,
    second_over_gates,
)
from handgrad.limits.inputs import Side
from handgrad.limits.lattice import Lattice
from handgrad.limits.samples import Samples
from handgrad.limits.variables import (
    ONE,
    Bias,
    Coefficient,
    Concat,
    Gated,
    InputVector,
    LinComb,
    MatMul,
    Nonlin,
    One,
    Variable,
    is_gaussian,
    parts_of,
)
from handgrad.limits.windows import are_windows, second_of_windows, tangent_of_windows
from handgrad.ops import matmul
from handgrad.ops.activation import gaussian_mean, v_transform


class SamplesNeededError(Exception):
    """An expectation without a closed form, of values that have to be sampled together."""


class Moments:
    """Expectations over two sides: of every example of one with every example of the other.

    Answers are arrays that broadcast to (N, M). With `right` None they are (N,): of each example
    with itself.
    """

    def __init__(
        self,
        left: Side,
        right: Side | None = None,
        *,
        alone: tuple[Moments, Moments] | None = None,
        samples: Samples | None = None,
        points: Lattice | None = None,
    ) -> None:
        self.sides = left, left if right is None else right
        self.is_diagonal = right is None
        #: Each side with itself.
        self.alone = (self, self) if alone is None else alone
        self.samples = samples
        self.points = points
        #: Where both sides have one example.
        self.gates: Gates | None = None
        if points is not None and self.sides[0].count == self.sides[1].count == 1:
            self.gates = Gates(self, points)
        self.known: dict[Ask, Any] = {}

    def second(self, u: Variable, v: Variable) -> Any:
        """E[u v] at one entry of the vectors, for each pair of examples."""
        return self._answer(Ask(self, "second", u, v))

    def tangent(self, u: Variable, v: Variable) -> Any:
        """The sum over all parameters of the product of the derivatives of u and v by them."""
        return self._answer(Ask(self, "tangent", u, v))

    def ask(self, kind: str, u: Variable, v: Variable) -> Ask:
        return Ask(self, kind, u, v)

    def _answer(self, ask: Ask) -> Any:
        """An answer by its rule, and those it needs first; not by recursion, for long sequences."""
        value: Any = self.recall(ask)
        if value is not None:
            return value
        stack: list[tuple[Ask, Rule]] = [(ask, self.rule(ask))]
        while stack:
            current, rule = stack[-1]
            try:
                needed = rule.send(value)
            except StopIteration as done:
                value = done.value
                current.moments.known[current] = value
                stack.pop()
                continue
            value = needed.moments.recall(needed)
            if value is None:
                stack.append((needed, needed.moments.rule(needed)))
        return value

    def recall(self, ask: Ask) -> Any:
        """An answer that is known, or that of the vectors in the other order, turned; else None."""
        found = self.known.get(ask)
        if found is not None or self.sides[0] is not self.sides[1]:
            return found
        found = self.known.get(Ask(self, ask.kind, ask.v, ask.u))
        if found is None or self.is_diagonal or np.ndim(found) < 2:
            return found
        return np.swapaxes(found, 0, 1)

    def rule(self, ask: Ask) -> Rule:
        """The rule that answers."""
        _, kind, u, v = ask
        if isinstance(u, Concat) or isinstance(v, Concat):
            return self._of_parts(kind, u, v)
        if isinstance(u, LinComb):
            return self._of_sum(kind, u, v, 0)
        if isinstance(v, LinComb):
            return self._of_sum(kind, v, u, 1)
        if kind == "given":
            return second_given_gates(self, u, v)
        return self._second(u, v) if kind == "second" else self._tangent(u, v)

    def _of_parts(self, kind: str, u: Variable, v: Variable) -> Rule:
        """The mean over the entries: each part by its share."""
        one, other = parts_of(u), parts_of(v)
        if len(one) > 1 and len(other) > 1:
            pairs = [(share, a, b) for (share, a), (_, b) in zip(one, other, strict=True)]
        else:
            pairs = [(share * of, a, b) for share, a in one for of, b in other]
        total: Any = 0.0
        for share, a, b in pairs:
            total = total + share * (yield Ask(self, kind, a, b))
        return total

    def _of_sum(self, kind: str, total: LinComb, other: Variable, side: int) -> Rule:
        """Term by term; terms that are independent of the other vector are left out at once."""
        found: Any = 0.0
        for factor, each in total.terms:
            if _are_independent(each, other):
                continue
            pair = (each, other) if side == 0 else (other, each)
            value = yield Ask(self, kind, *pair)
            if not _is_nothing(value):
                found = found + self._placed(factor, side) * value
        return found

    def _placed(self, factor: Coefficient, side: int) -> Any:
        """A factor of the examples of one side, along their axis."""
        return self._along(factor(self.alone[side]), side) if callable(factor) else factor

    def _along(self, values: Any, side: int) -> Any:
        if self.is_diagonal or np.ndim(values) == 0:
            return values
        return values[:, None] if side == 0 else values[None, :]

    def _second(self, u: Variable, v: Variable) -> Rule:
        if isinstance(u, Bias) and isinstance(v, Bias):
            return u.weight.variance if u.weight is v.weight else 0.0
        if isinstance(u, MatMul) and isinstance(v, MatMul):
            if u.weight is not v.weight or u.weight.variance == 0.0:
                return 0.0
            return u.weight.variance * (yield Ask(self, "second", u.operand, v.operand))
        if isinstance(u, InputVector) and isinstance(v, InputVector):
            return self._gram(u, v)
        if isinstance(u, One) or isinstance(v, One):
            side, each = (1, v) if isinstance(u, One) else (0, u)
            return (yield from self._mean(each, side))
        if _are_independent(u, v):
            return 0.0
        if isinstance(u, Nonlin) and isinstance(v, Nonlin) and self._closed(u, v):
            covariances = yield from self._covariances(u, v)
            return v_transform(u.activation, *covariances, **u.options)
        if self.gates is not None:
            if isinstance(u, Gated) or isinstance(v, Gated):
                if are_separate(u, v):
                    return (yield from second_over_gates(self, u, v))
            elif isinstance(u, Nonlin) and isinstance(v, Nonlin) and are_mixtures(u, v):
                return (yield from second_of_mixtures(self, u, v))
        for gaussian, other, side in ((u, v, 1), (v, u, 0)):
            drawn = isinstance(gaussian, (MatMul, Bias))
            if drawn and isinstance(other, Nonlin) and is_gaussian(other.operand):
                return (yield from self._linear(gaussian, other, side))
        if self.points is not None and are_windows(u, v):
            return (yield from second_of_windows(self, u, v, self.points))
        return self._sampled().second(self, u, v)

    def _linear(self, g: Variable, h: Nonlin, side: int) -> Rule:
        """E[g f(g′)] = E[g g′] E[f′(g′)], where h = f(g′) is of the given side.

        Source: Stein, Estimation of the mean of a multivariate normal distribution (1981), lemma 1.
        """
        pair = (h.operand, g) if side == 0 else (g, h.operand)
        covariance = yield Ask(self, "second", *pair)
        if _is_nothing(covariance):
            return 0.0
        k = yield Ask(self.alone[side], "second", h.operand, h.operand)
        # Two independent values have the mean slope squared, which is above 0 for every function.
        squared = v_transform(h.activation, 0.0, k, k, derivative=True, **h.options)
        return covariance * self._along(np.sqrt(squared), side)

    def _closed(self, u: Nonlin, v: Nonlin) -> bool:
        same = u.activation == v.activation and u.options == v.options
        return same and is_gaussian(u.operand) and is_gaussian(v.operand)

    def _covariances(self, u: Nonlin, v: Nonlin) -> Generator[Ask, Any, tuple[Any, Any, Any]]:
        """k12, k11 and k22 of the Gaussian vectors that the functions are applied to."""
        k12 = yield Ask(self, "second", u.operand, v.operand)
        k11 = yield Ask(self.alone[0], "second", u.operand, u.operand)
        k22 = yield Ask(self.alone[1], "second", v.operand, v.operand)
        return k12, self._along(k11, 0), self._along(k22, 1)

    def _mean(self, u: Variable, side: int) -> Rule:
        if isinstance(u, One):
            return 1.0
        if is_gaussian(u):
            return 0.0
        if isinstance(u, InputVector):
            return self._along(self.sides[side].values(u.key).mean(axis=1), side)
        if isinstance(u, Nonlin) and is_gaussian(u.operand):
            variance = yield Ask(self.alone[side], "second", u.operand, u.operand)
            return self._along(gaussian_mean(u.activation, variance, **u.options), side)
        if isinstance(u, Nonlin) and self.gates is not None and are_mixtures(u, u):
            return (yield from mean_of_mixture(self, u, side))
        one, other = (ONE, u) if side else (u, ONE)
        if self.points is not None and are_windows(one, other):
            return (yield from second_of_windows(self, one, other, self.points))
        return self._sampled().second(self, one, other)

    def _gram(self, u: InputVector, v: InputVector) -> Array:
        one, other = self.sides[0].values(u.key), self.sides[1].values(v.key)
        if one.dtype.kind in "iu":
            same = one == other if self.is_diagonal else one[:, None] == other[None, :]
            return same.astype(np.float64)
        if self.is_diagonal:
            return np.einsum("nd,nd->n", one, other) / one.shape[1]
        products, _ = matmul.forward(one, np.ascontiguousarray(other.T))
        return np.asarray(products) / one.shape[1]

    def _tangent(self, u: Variable, v: Variable) -> Rule:
        if (
            isinstance(u, (One, InputVector))
            or isinstance(v, (One, InputVector))
            or _are_independent(u, v)
        ):
            return 0.0
        if isinstance(u, Bias) and isinstance(v, Bias):
            return u.weight.variance
        if isinstance(u, MatMul) and isinstance(v, MatMul):
            own = yield Ask(self, "second", u.operand, v.operand)
            below = yield Ask(self, "tangent", u.operand, v.operand)
            return u.weight.variance * (own + below)
        if isinstance(u, Nonlin) and isinstance(v, Nonlin) and self._closed(u, v):
            below = yield Ask(self, "tangent", u.operand, v.operand)
            if _is_nothing(below):
                return 0.0
            covariances = yield from self._covariances(u, v)
            slope = v_transform(u.activation, *covariances, derivative=True, **u.options)
            return slope * below
        if self.points is not None and are_windows(u, v):
            return (yield from tangent_of_windows(self, u, v, self.points))
        found: Any = 0.0
        samples = self._sampled()
        for one, slope in samples.slopes(u).items():
            for other, another in samples.slopes(v).items():
                below = yield Ask(self, "tangent", one, other)
                if not _is_nothing(below):
                    found = found + samples.product(self, slope, another) * below
        return found

    def _sampled(self) -> Samples:
        if self.samples is None:
            raise SamplesNeededError
        return self.samples


def _is_nothing(value: Any) -> bool:
    """True for the number 0, which rules give where vectors have nothing in common."""
    return isinstance(value, float) and value == 0.0


def _are_independent(u: Variable, v: Variable) -> bool:
    """True where two drawn vectors come from different draws, or one is no drawn vector but given.

    Vectors of mean 0 that are independent have no product.
    """
    drawn = (MatMul, Bias)
    if isinstance(u, drawn) and isinstance(v, drawn):
        return u.weight is not v.weight
    one, other = (u, v) if isinstance(u, drawn) else (v, u)
    return isinstance(one, drawn) and isinstance(other, (InputVector, One))
