"""Erf: the error function, which takes any number to a value between −1 and 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops import special
from handgrad.ops.covariances import Values, bounded, determinant, variances

if TYPE_CHECKING:
    from jaxtyping import Float

TWO_OVER_SQRT_PI: Final = 2.0 / math.sqrt(math.pi)


class Cache(NamedTuple):
    """x, because the derivative cannot be had from an output that is rounded to 1."""

    x: Array


@operation
def forward(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Cache]:
    """Error function.

    Forward:  y = erf(x) = 2/√π ∫₀ˣ exp(−t²) dt
    Backward: dx = dy 2/√π exp(−x²)

    ±∞ give exactly ±1, with derivative 0.

    Shapes: x, y any shape.
    Source: Williams, Computing with infinite networks (1997).
    """
    y = special.erf(x)
    return y, Cache(x)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy 2/√π exp(−x²)."""
    x = cache.x
    xp = array_namespace(dy)
    slope = TWO_OVER_SQRT_PI * xp.exp(-x * x)
    dx = dy * slope
    return dx


def _q(k12: Values, most: Values, k11: Values, k22: Values) -> Values:
    """(1 + 2 k₁₁) (1 + 2 k₂₂) − 4 k₁₂² as a sum of numbers from 0, in which nothing cancels."""
    q = determinant(k12, most)
    q *= 4.0
    q += 1.0 + 2.0 * (k11 + k22)
    return q


def v_transform(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f(z₁) f(z₂)] = 2/π arcsin(2 k₁₂/√((1 + 2 k₁₁) (1 + 2 k₂₂))).

    Source: Williams, Computing with infinite networks (1997).
    """
    k11, k22 = variances(k11), variances(k22)
    k12, most = bounded(k12, k11, k22)
    root = np.sqrt(_q(k12, most, k11, k22))
    # For large variances and a correlation near 1 the arcsine loses half of the digits that this
    # angle keeps.
    return np.asarray(2.0 / math.pi * np.arctan2(2.0 * k12, root))


def v_transform_derivative(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f′(z₁) f′(z₂)] = 4/π /√((1 + 2 k₁₁) (1 + 2 k₂₂) − 4 k₁₂²)."""
    k11, k22 = variances(k11), variances(k22)
    k12, most = bounded(k12, k11, k22)
    return np.asarray(4.0 / math.pi / np.sqrt(_q(k12, most, k11, k22)))


def gaussian_mean(k11: ArrayLike) -> Values:
    """E[f(z₁)] = 0: f is odd."""
    return np.zeros_like(variances(k11))
