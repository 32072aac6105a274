"""ReLU: keep what is positive, drop the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.covariances import Values, bounded, determinant, variances

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The output: y > 0 exactly where x > 0, so one array serves the next op and this backward."""

    y: Array


@operation
def forward(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Cache]:
    """Rectified linear unit.

    Forward:  y = max(x, 0)
    Backward: dx = dy where x > 0, else 0

    The derivative at x = 0 is taken as 0. NaN stays NaN going forward.

    Shapes: x, y any shape.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 2; Anonymous,
    Transformer Layer: notițe și arhitectură (undated), section 3.
    """
    xp = array_namespace(x)
    y = xp.where(x <= 0, xp.zeros_like(x), x)
    return y, Cache(y)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy where y > 0, else 0."""
    xp = array_namespace(dy)
    dx = xp.where(cache.y > 0, dy, xp.zeros_like(dy))
    return dx


def v_transform(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f(z₁) f(z₂)] = (d + k₁₂ (π − θ))/2π,  d = √(k₁₁ k₂₂ − k₁₂²),  θ the angle of (k₁₂, d).

    Source: Cho, Saul, Kernel methods for deep learning (2009), section 2.
    """
    value, most = bounded(k12, variances(k11), variances(k22))
    d = determinant(value, most)
    np.sqrt(d, out=d)
    # π − θ, but not as an arccosine of k₁₂/√(k₁₁ k₂₂): near 1 that loses half of the digits that d
    # keeps. It overwrites √(k₁₁ k₂₂), because covariances fill memory.
    rest = np.arctan2(d, np.negative(value, out=most), out=most)
    rest /= 2.0 * math.pi
    d /= 2.0 * math.pi
    value *= rest
    value += d
    return value


def v_transform_derivative(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f′(z₁) f′(z₂)] = (π − θ)/2π, and 0 where a variance is 0, as f′(0) is.

    Near a correlation of ±1 it changes as the root of the distance from it: there a rounding of
    k₁₂ by 1e-16 of it moves the result by 1e-9.
    """
    value, most = bounded(k12, variances(k11), variances(k22))
    d = determinant(value, most)
    np.sqrt(d, out=d)
    np.arctan2(d, np.negative(value, out=value), out=value)
    value /= 2.0 * math.pi
    value *= most > 0.0
    return value


def gaussian_mean(k11: ArrayLike) -> Values:
    """E[f(z₁)] = √(k₁₁/2π)."""
    return np.asarray(np.sqrt(variances(k11) / (2.0 * math.pi)))
