"""Leaky ReLU: keep what is positive, shrink the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops import relu
from handgrad.ops.covariances import Values, bounded, variances

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """x, whose sign picks the slope; y would not do, as the slope may be 0 or negative."""

    x: Array
    negative_slope: float


@operation
def forward(
    x: Float[Array, "*shape"], *, negative_slope: float = 0.01
) -> tuple[Float[Array, "*shape"], Cache]:
    """Leaky rectified linear unit.

    Forward:  y = x where x > 0, else negative_slope · x
    Backward: dx = dy where x > 0, else negative_slope · dy

    The derivative at x = 0 is taken as negative_slope, as in PyTorch.

    Shapes: x, y any shape.
    Source: Maas, Hannun, Ng, Rectifier nonlinearities improve neural network acoustic models
    (2013), section 2.
    """
    xp = array_namespace(x)
    y = xp.where(x > 0, x, negative_slope * x)
    return y, Cache(x, negative_slope)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy where x > 0, else negative_slope · dy."""
    x, negative_slope = cache
    xp = array_namespace(dy)
    dx = xp.where(x > 0, dy, negative_slope * dy)
    return dx


def v_transform(
    k12: ArrayLike, k11: ArrayLike, k22: ArrayLike, *, negative_slope: float = 0.01
) -> Values:
    """E[f(z₁) f(z₂)] = (1 − s)² r + s k₁₂,  r that of ReLU and s the slope below 0.

    Source: Tsuchida, Roosta-Khorasani, Gallagher, Invariance of weight distributions in rectified
    MLPs (2018).
    """
    k12, _ = bounded(k12, variances(k11), variances(k22))
    rectified = relu.v_transform(k12, k11, k22)
    return np.asarray((1.0 - negative_slope) ** 2 * rectified + negative_slope * k12)


def v_transform_derivative(
    k12: ArrayLike, k11: ArrayLike, k22: ArrayLike, *, negative_slope: float = 0.01
) -> Values:
    """E[f′(z₁) f′(z₂)] = (1 − s)² r′ + s,  r′ that of ReLU.

    Where a variance is 0, f′ is s there, and the product of both means is left.
    """
    k11, k22 = variances(k11), variances(k22)
    _, most = bounded(k12, k11, k22)
    rectified = relu.v_transform_derivative(k12, k11, k22)
    mean1, mean2 = (
        np.where(k > 0.0, 0.5 * (1.0 + negative_slope), negative_slope) for k in (k11, k22)
    )
    both = (1.0 - negative_slope) ** 2 * rectified + negative_slope
    return np.where(most == 0.0, mean1 * mean2, both)


def gaussian_mean(k11: ArrayLike, *, negative_slope: float = 0.01) -> Values:
    """E[f(z₁)] = (1 − s) √(k₁₁/2π)."""
    return np.asarray((1.0 - negative_slope) * np.sqrt(variances(k11) / (2.0 * math.pi)))
