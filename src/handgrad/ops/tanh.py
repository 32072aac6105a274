"""Tanh: any number to a value between −1 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.covariances import Values, variances
from handgrad.ops.quadrature import expected_product, slope_of

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The output, in which the derivative is a polynomial; x is not needed again."""

    y: Array


@operation
def forward(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Cache]:
    """Hyperbolic tangent.

    Forward:  y = tanh(x)
    Backward: dx = dy (1 − y²)

    Shapes: x, y any shape.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 4.
    """
    xp = array_namespace(x)
    y = xp.tanh(x)
    return y, Cache(y)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy (1 − y²)."""
    y = cache.y
    dx = dy * (1.0 - y * y)
    return dx


def _slope(x: Values) -> Values:
    """f′(x) = 1 − tanh² x."""
    return slope_of(forward, backward, x)


def v_transform(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f(z₁) f(z₂)], by a Hermite series; see `quadrature` for its error."""
    return expected_product(np.tanh, k12, k11, k22, odd=True)


def v_transform_derivative(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f′(z₁) f′(z₂)], by a Hermite series; see `quadrature` for its error."""
    return expected_product(_slope, k12, k11, k22, odd=False)


def gaussian_mean(k11: ArrayLike) -> Values:
    """E[f(z₁)] = 0: f is odd."""
    return np.zeros_like(variances(k11))
