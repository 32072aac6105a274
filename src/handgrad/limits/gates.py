"""Gated vectors: sums of vectors, each times a function of a Gaussian vector of other matrices.

Given the gates, the expectation of a product follows from those of the vectors that are gated, term
by term, down to vectors without gates. The mean over the gates alone is left: over points of a
lattice, in as many dimensions as there are gates behind the two vectors. An activation of a sum
with one gated term, such as a candidate behind its reset gate, is Gaussian given that gate: its
V-transform is expanded in Hermite polynomials of both gates, as in `ops.quadrature`.

Source: Yang, Tensor programs I: wide feedforward or recurrent neural networks of any architecture
are Gaussian processes (2019), its appendix on the GRU, for the terms of the state.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.limits.asking import Expectations, Rule
from handgrad.limits.lattice import Lattice
from handgrad.limits.variables import (
    Gate,
    Gated,
    LinComb,
    Nonlin,
    Variable,
    behind,
    entrywise,
    is_gaussian,
    weights_of,
)
from handgrad.ops import sigmoid
from handgrad.ops.activation import gaussian_mean, v_transform

#: Hermite polynomials of a gate, and nodes. For variances up to 10 of the gate the terms beyond
#: are below 1e-9.
_NODES: Final = 40
#: The part of a variance below which a gate counts as a function of those before it: lattices leave
#: errors in covariances that a division by less would make large.
_LEAST: Final = 1e-6


def logistic(a: Array) -> Array:
    return np.asarray(sigmoid.forward.reference(np.asarray(a))[0])  # type: ignore[attr-defined]


def _slope(a: Array) -> Array:
    return logistic(a) * logistic(-a)


def open_gate(a: Variable) -> Gate:
    """σ(a)."""
    return Gate(a, logistic, _slope)


def closed_gate(a: Variable) -> Gate:
    """1 − σ(a)."""
    return Gate(a, lambda a: logistic(-a), lambda a: -_slope(a))


def gated(
    name: str, *terms: tuple[Gate, Variable], text: str, index: tuple[int, ...] = ()
) -> Gated:
    """Σ gate ⊙ vector; `text` has {0} and on for the gates' vectors, then the gated ones."""
    operands = tuple(dict.fromkeys([gate.of for gate, _ in terms] + [each for _, each in terms]))
    at = {operand: number for number, operand in enumerate(operands)}

    def value(*values: Array) -> Array:
        products = (gate.value(values[at[gate.of]]) * values[at[each]] for gate, each in terms)
        return np.asarray(sum(products))

    def partials(*values: Array) -> tuple[Array, ...]:
        slopes: list[Any] = [0.0] * len(operands)
        for gate, each in terms:
            slopes[at[gate.of]] = (
                slopes[at[gate.of]] + gate.slope(values[at[gate.of]]) * (values[at[each]])
            )
            slopes[at[each]] = slopes[at[each]] + gate.value(values[at[gate.of]])
        return tuple(np.asarray(slope) for slope in slopes)

    return Gated(name, operands, value, partials, text, terms=terms, index=index)


class Gates:
    """The gates behind the vectors of one pair of examples, at the points of a lattice."""

    def __init__(self, moments: Expectations, points: Lattice) -> None:
        self._moments = moments
        self._points = points
        #: Gaussian vectors with their side, and L⁻¹ of their covariance L Lᵀ, a row for each.
        self._drawn: list[tuple[Variable, int]] = []
        self._inverse = np.empty((0, 0))
        self._lock = Lock()
        self._preactivations: dict[tuple[Variable, int], Array] = {}
        self._values: dict[tuple[Gate, int], Array] = {}

    def values(self, gate: Gate, side: int) -> Rule:
        """A gate at every point, (points, 1)."""
        side = 0 if self._moments.is_diagonal else side
        if (gate, side) not in self._values:
            a = yield from self._preactivation(gate.of, side)
            self._values[gate, side] = gate.value(a)
        return self._values[gate, side]

    def _preactivation(self, variable: Variable, side: int) -> Rule:
        """Values with the covariances that the vector has with all that were drawn before it."""
        alone = self._moments.alone[side]
        own = _number((yield alone.ask("second", variable, variable)))
        cross: list[float] = []
        while (variable, side) not in self._preactivations:
            # More are drawn while covariances are asked for, here or in another thread.
            while len(cross) < len(self._drawn):
                earlier, at = self._drawn[len(cross)]
                pair = (variable, earlier) if at == 1 else (earlier, variable)
                ask = (alone if at == side else self._moments).ask("second", *pair)
                cross.append(_number((yield ask)))
            with self._lock:
                if len(cross) == len(self._drawn):
                    self._draw(variable, side, own, np.array(cross))
        return self._preactivations[variable, side]

    def _draw(self, variable: Variable, side: int, own: float, cross: Array) -> None:
        """Take values with variance `own`, and `cross` with all that are drawn."""
        row = self._inverse @ cross
        rest = own - float(row @ row)
        values = np.zeros((self._points.count, 1))
        for dimension, factor in enumerate(row):
            values[:, 0] += factor * self._points.normals(dimension)
        self._preactivations[variable, side] = values
        if rest <= _LEAST * own:
            return
        root, known = np.sqrt(rest), len(row)
        values[:, 0] += root * self._points.normals(known)
        grown = np.zeros((known + 1, known + 1))
        grown[:known, :known] = self._inverse
        grown[known] = np.append(-(row @ self._inverse), 1.0) / root
        self._inverse = grown
        self._drawn.append((variable, side))


def second_over_gates(moments: Expectations, u: Variable, v: Variable) -> Rule:
    """E[u v] where one of them is gated, as the mean over the gates of what it is given them."""
    value = yield moments.ask("given", u, v)
    return value if isinstance(value, float) else np.mean(value, axis=0)


def second_given_gates(moments: Expectations, u: Variable, v: Variable) -> Rule:
    """E[u v] given all gates behind them, (points, 1); a number where no gate is."""
    for side, (first, other) in enumerate(((u, v), (v, u))):
        if not isinstance(first, Gated):
            continue
        total: Any = 0.0
        for gate, each in first.terms:
            pair = (each, other) if side == 0 else (other, each)
            inner = yield moments.ask("given", *pair)
            if isinstance(inner, float) and inner == 0.0:
                continue
            assert moments.gates is not None
            total = total + (yield from moments.gates.values(gate, side)) * inner
        return total
    return (yield moments.ask("second", u, v))


def are_separate(u: Variable, v: Variable) -> bool:
    """True where no gate behind the two shares a matrix with what is gated."""
    gates: set[Any] = set()
    others: set[Any] = set()
    for each in behind([u, v], _gated_parts):
        if isinstance(each, Gated):
            gates |= set().union(*(weights_of(gate.of) for gate, _ in each.terms))
        elif not isinstance(each, LinComb) or is_gaussian(each):
            others |= _weights_behind(each)
    return not gates & others


def _gated_parts(variable: Variable) -> tuple[Variable, ...]:
    if isinstance(variable, Gated):
        return tuple(each for _, each in variable.terms)
    return (
        ()
        if not isinstance(variable, LinComb) or is_gaussian(variable)
        else (tuple(each for _, each in variable.terms))
    )


def _weights_behind(variable: Variable) -> set[Any]:
    leaves = (each for each in behind([variable], entrywise) if is_gaussian(each))
    return set().union(*map(weights_of, leaves))


class _Mixture(NamedTuple):
    """A Gaussian sum with one more Gaussian vector behind a gate: a + gate ⊙ b."""

    a: list[Variable]
    gate: Gate
    b: Variable


def _mixture_of(variable: Variable) -> _Mixture | None:
    """The parts of such a sum, None of another vector."""
    if not isinstance(variable, LinComb) or any(factor != 1.0 for factor, _ in variable.terms):
        return None
    a = [each for _, each in variable.terms if is_gaussian(each)]
    others = [each for _, each in variable.terms if not is_gaussian(each)]
    if len(others) != 1 or not isinstance(others[0], Gated) or len(others[0].terms) != 1:
        return None
    ((gate, b),) = others[0].terms
    return _Mixture(a, gate, b) if is_gaussian(b) else None


def are_mixtures(u: Nonlin, v: Nonlin) -> bool:
    """True for one function of such sums, whose parts come from different matrices."""
    one, other = _mixture_of(u.operand), _mixture_of(v.operand)
    if one is None or other is None or u.activation != v.activation or u.options != v.options:
        return False
    of_a = set().union(*map(weights_of, (*one.a, *other.a)))
    of_b = weights_of(one.b) | weights_of(other.b)
    of_gates = weights_of(one.gate.of) | weights_of(other.gate.of)
    return not (of_a & of_b or of_a & of_gates or of_b & of_gates)


def second_of_mixtures(moments: Expectations, u: Nonlin, v: Nonlin) -> Rule:
    """E[f(a + gate ⊙ b) f(a′ + gate′ ⊙ b′)]: for both gates' values on a grid, a V-transform."""
    one, other = _mixture_of(u.operand), _mixture_of(v.operand)
    assert one is not None
    assert other is not None
    a12 = yield from _total(moments, one.a, other.a)
    b12 = yield from _total(moments, [one.b], [other.b])
    c12 = yield from _total(moments, [one.gate.of], [other.gate.of])
    k11, left, c11 = yield from _variances(moments.alone[0], one)
    k22, right, c22 = yield from _variances(moments.alone[1], other)
    k12 = a12 + b12 * left[:, None] * right[None, :]
    grid = v_transform(u.activation, k12, k11[:, None], k22[None, :], **u.options)
    _, polynomials = _hermite()
    coefficients = np.einsum("in,ij,jn->n", polynomials, grid, polynomials)
    most = np.sqrt(c11 * c22)
    correlation = min(max(c12 / most, -1.0), 1.0) if most > 0.0 else 0.0
    return np.array([np.sum(coefficients * correlation ** np.arange(_NODES))])


def mean_of_mixture(moments: Expectations, u: Nonlin, side: int) -> Rule:
    """E[f(a + gate ⊙ b)]."""
    mixture = _mixture_of(u.operand)
    assert mixture is not None
    k11, _, _ = yield from _variances(moments.alone[side], mixture)
    _, polynomials = _hermite()
    return np.array([polynomials[:, 0] @ gaussian_mean(u.activation, k11, **u.options)])


def _variances(alone: Expectations, mixture: _Mixture) -> Rule:
    """Of a + gate ⊙ u at the nodes of the gate, with the gate there, and the gate's variance."""
    a = yield from _total(alone, mixture.a, mixture.a)
    b = yield from _total(alone, [mixture.b], [mixture.b])
    c = yield from _total(alone, [mixture.gate.of], [mixture.gate.of])
    nodes, _ = _hermite()
    gate = mixture.gate.value(np.sqrt(max(c, 0.0)) * nodes)
    return a + b * gate * gate, gate, c


def _total(moments: Expectations, left: list[Variable], right: list[Variable]) -> Rule:
    total = 0.0
    for one in left:
        for other in right:
            total += _number((yield moments.ask("second", one, other)))
    return total


@cache
def _hermite() -> tuple[Array, Array]:
    """Nodes of Gauss and Hermite, and hₙ there times the weights, (node, n)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    rows = [np.zeros_like(nodes), np.ones_like(nodes)]
    for n in range(_NODES - 1):
        rows.append((nodes * rows[-1] - np.sqrt(n) * rows[-2]) / np.sqrt(n + 1))
    return nodes, np.array(rows[1:]).T * (weights / np.sqrt(2.0 * np.pi))[:, None]


def _number(value: Any) -> float:
    """The one number that an expectation of a single pair of examples is."""
    return float(np.reshape(value, -1)[0])
