"""Sine: a wave, by which networks represent signals with their derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.covariances import Values, bounded, variances

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """x, because y has the derivative but for its sign."""

    x: Array


@operation
def forward(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Cache]:
    """Sine of an angle in radians.

    Forward:  y = sin(x)
    Backward: dx = dy cos(x)

    ±∞ have no sine: they give NaN.

    Shapes: x, y any shape.
    Source: Sitzmann et al., Implicit neural representations with periodic activation functions
    (2020), section 3.
    """
    xp = array_namespace(x)
    y = xp.sin(x)
    return y, Cache(x)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy cos(x)."""
    x = cache.x
    xp = array_namespace(dy)
    dx = dy * xp.cos(x)
    return dx


def _waves(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> tuple[Values, Values]:
    """exp(−(k₁₁ + k₂₂)/2 + |k₁₂|), which does not overflow, and k₁₂ within its bounds."""
    k11, k22 = variances(k11), variances(k22)
    k12, most = bounded(k12, k11, k22)
    # (k₁₁ + k₂₂)/2 − |k₁₂| = (√k₁₁ − √k₂₂)²/2 + √(k₁₁ k₂₂) − |k₁₂|, the difference of large numbers
    # only where variances themselves differ.
    gap = 0.5 * (np.sqrt(k11) - np.sqrt(k22)) ** 2
    return np.exp(-gap - (most - np.abs(k12))), k12


def v_transform(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f(z₁) f(z₂)] = exp(−(k₁₁ + k₂₂)/2) sinh(k₁₂): the mean of half the difference of
    cos(z₁ − z₂) and cos(z₁ + z₂)."""
    wave, k12 = _waves(k12, k11, k22)
    return np.asarray(-0.5 * np.sign(k12) * wave * np.expm1(-2.0 * np.abs(k12)))


def v_transform_derivative(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f′(z₁) f′(z₂)] = exp(−(k₁₁ + k₂₂)/2) cosh(k₁₂)."""
    wave, k12 = _waves(k12, k11, k22)
    return np.asarray(0.5 * wave * (1.0 + np.exp(-2.0 * np.abs(k12))))


def gaussian_mean(k11: ArrayLike) -> Values:
    """E[f(z₁)] = 0: f is odd."""
    return np.zeros_like(variances(k11))
