"""Sigmoid: any number to a value between 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops import tanh
from handgrad.ops.covariances import Values, variances
from handgrad.ops.special import logistic

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The output, in which the derivative is a polynomial; x is not needed again."""

    y: Array


@operation
def forward(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Cache]:
    """Logistic sigmoid.

    Forward:  y = 1/(1 + exp(−x))
    Backward: dx = dy y (1 − y)

    No x overflows; ±∞ give exactly 0 and 1.

    Shapes: x, y any shape.
    Source: Yeung, The Deep Learning Dump (2023), section 3, with the x that its formula leaves out.
    """
    y = logistic(x)
    return y, Cache(y)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy y (1 − y)."""
    y = cache.y
    dx = dy * y * (1.0 - y)
    return dx


def v_transform(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f(z₁) f(z₂)] = (1 + t)/4,  t that of tanh at covariances k/4, because
    f(x) = (1 + tanh(x/2))/2."""
    quarter12, quarter11, quarter22 = (0.25 * np.asarray(k) for k in (k12, k11, k22))
    return 0.25 * (1.0 + tanh.v_transform(quarter12, quarter11, quarter22))


def v_transform_derivative(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f′(z₁) f′(z₂)] = t′/16,  t′ that of tanh at covariances k/4."""
    quarter12, quarter11, quarter22 = (0.25 * np.asarray(k) for k in (k12, k11, k22))
    return tanh.v_transform_derivative(quarter12, quarter11, quarter22) / 16.0


def gaussian_mean(k11: ArrayLike) -> Values:
    """E[f(z₁)] = ½: f − ½ is odd."""
    return np.full_like(variances(k11), 0.5)
