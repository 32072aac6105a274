"""Layer normalisation: every row to mean 0 and variance 1, then scaled and shifted.

γ and β are there because without them each row would leave with mean 0 and variance 1, whatever the
loss asks for. They are learned, one of each for every number of a row, and give every feature a
scale and a mean of its own again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.arguments import check_axis, check_eps, check_vector

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The normalised rows and 1/√(variance + eps), in which backward is written, and γ.

    x and its mean drop out; β has no part in any gradient.
    """

    x_hat: Array
    inv_std: Array
    gamma: Array


def validate(x: Array, gamma: Array, beta: Array, *, eps: float = 1e-5) -> None:
    check_axis("layer_norm", -1, x)
    check_vector("layer_norm", "gamma", gamma, x.shape[-1])
    check_vector("layer_norm", "beta", beta, x.shape[-1])
    check_eps("layer_norm", eps)


@operation
def forward(
    x: Float[Array, "*batch D"],
    gamma: Float[Array, "D"],
    beta: Float[Array, "D"],
    *,
    eps: float = 1e-5,
) -> tuple[Float[Array, "*batch D"], Cache]:
    """Layer normalisation over the last axis.

    Forward:  x̂ = (x − μ)/√(σ² + eps),  y = γ x̂ + β   (μ, σ²: each row's mean, population variance)
    Backward: dx̂ = dy γ,  dx = (dx̂ − mean(dx̂) − x̂ mean(dx̂ x̂))/√(σ² + eps),
              dγ = Σ dy x̂,  dβ = Σ dy   (means over the row, sums over every row)

    A constant row gives β as long as eps > 0.

    Shapes: x, y (..., D) with D at least 1; gamma, beta (D,).
    Raises ShapeError where these do not fit, ArgumentError for eps < 0.
    Source: Gulino, Neural Network Simplified Mathematics (2025), layer normalisation, with σ² + eps
    under a root; Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5;
    Ba, Kiros, Hinton, Layer normalization (2016), for γ and β.
    """
    xp = array_namespace(x)
    mean = xp.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    inv_std = 1.0 / xp.sqrt(variance + eps)
    x_hat = centred * inv_std
    y = gamma * x_hat + beta
    return y, Cache(x_hat, inv_std, gamma)


@operation
def backward(
    dy: Float[Array, "*batch D"], cache: Cache
) -> tuple[Float[Array, "*batch D"], Float[Array, "D"], Float[Array, "D"]]:
    """dx = (dx̂ − mean(dx̂) − x̂ mean(dx̂ x̂))/√(σ² + eps) with dx̂ = dy γ,  dγ = Σ dy x̂,  dβ = Σ dy."""
    x_hat, inv_std, gamma = cache
    xp = array_namespace(dy)
    rows = (math.prod(dy.shape[:-1]), dy.shape[-1])
    dgamma = xp.sum(xp.reshape(dy * x_hat, rows), axis=0)
    dbeta = xp.sum(xp.reshape(dy, rows), axis=0)
    dx_hat = dy * gamma
    mean_dx_hat = xp.mean(dx_hat, axis=-1, keepdims=True)
    mean_dx_hat_x_hat = xp.mean(dx_hat * x_hat, axis=-1, keepdims=True)
    dx = (dx_hat - mean_dx_hat - x_hat * mean_dx_hat_x_hat) * inv_std
    return dx, dgamma, dbeta
