"""RMS normalisation: every row to mean square 1, then scaled.

γ is there because without it each row would leave with mean square 1, whatever the loss asks for.
It is learned, and gives every feature a scale of its own again.
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
    """The normalised rows and 1/√(mean square + eps), in which backward is written, and γ."""

    x_hat: Array
    inv_rms: Array
    gamma: Array


def validate(x: Array, gamma: Array, *, eps: float = 1e-5) -> None:
    check_axis("rms_norm", -1, x)
    check_vector("rms_norm", "gamma", gamma, x.shape[-1])
    check_eps("rms_norm", eps)


@operation
def forward(
    x: Float[Array, "*batch D"], gamma: Float[Array, "D"], *, eps: float = 1e-5
) -> tuple[Float[Array, "*batch D"], Cache]:
    """Root mean square normalisation over the last axis.

    Forward:  x̂ = x/√(mean(x²) + eps),  y = γ x̂
    Backward: dx̂ = dy γ,  dx = (dx̂ − x̂ mean(dx̂ x̂))/√(mean(x²) + eps),  dγ = Σ dy x̂
              (means over the row, sum over every row)

    A row of zeros gives 0 as long as eps > 0.

    Shapes: x, y (..., D) with D at least 1; gamma (D,).
    Raises ShapeError where these do not fit, ArgumentError for eps < 0.
    Source: Zhang, Sennrich, Root mean square layer normalization (2019), equation 4.
    """
    xp = array_namespace(x)
    mean_square = xp.mean(x * x, axis=-1, keepdims=True)
    inv_rms = 1.0 / xp.sqrt(mean_square + eps)
    x_hat = x * inv_rms
    y = gamma * x_hat
    return y, Cache(x_hat, inv_rms, gamma)


@operation
def backward(
    dy: Float[Array, "*batch D"], cache: Cache
) -> tuple[Float[Array, "*batch D"], Float[Array, "D"]]:
    """dx = (dx̂ − x̂ mean(dx̂ x̂))/√(mean(x²) + eps) with dx̂ = dy γ,  dγ = Σ dy x̂."""
    x_hat, inv_rms, gamma = cache
    xp = array_namespace(dy)
    rows = (math.prod(dy.shape[:-1]), dy.shape[-1])
    dgamma = xp.sum(xp.reshape(dy * x_hat, rows), axis=0)
    dx_hat = dy * gamma
    mean_dx_hat_x_hat = xp.mean(dx_hat * x_hat, axis=-1, keepdims=True)
    dx = (dx_hat - x_hat * mean_dx_hat_x_hat) * inv_rms
    return dx, dgamma
