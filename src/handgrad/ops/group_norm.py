"""Group normalisation: every group of channels of an example to mean 0 and variance 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ArgumentError, ShapeError
from handgrad.ops.arguments import check_eps, check_integer, check_vector

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The normalised values in the shape of x, 1/√(variance + eps) per group (N, G, 1), and γ.

    x and its means drop out; β has no part in any gradient.
    """

    x_hat: Array
    inv_std: Array
    gamma: Array


def validate(x: Array, gamma: Array, beta: Array, *, num_groups: int, eps: float = 1e-5) -> None:
    if len(x.shape) < 2:
        raise ShapeError(f"group_norm: x has shape {tuple(x.shape)}; allowed: (N, C, ...)")
    if 0 in x.shape[1:]:
        raise ShapeError(
            f"group_norm: x has shape {tuple(x.shape)}; allowed: (N, C, ...) with at least one "
            f"channel and one position"
        )
    channels = x.shape[1]
    check_vector("group_norm", "gamma", gamma, channels)
    check_vector("group_norm", "beta", beta, channels)
    check_integer("group_norm", "num_groups", num_groups, 1, channels)
    if channels % num_groups != 0:
        raise ArgumentError(
            f"group_norm: num_groups is {num_groups}; allowed: a divisor of {channels}, the number "
            f"of channels"
        )
    check_eps("group_norm", eps)


@operation
def forward(
    x: Float[Array, "N C *size"],
    gamma: Float[Array, "C"],
    beta: Float[Array, "C"],
    *,
    num_groups: int,
    eps: float = 1e-5,
) -> tuple[Float[Array, "N C *size"], Cache]:
    """Group normalisation: of each example, every C/G neighbouring channels together.

    Forward:  x̂ = (x − μ)/√(σ² + eps),  y = γ x̂ + β
              (μ, σ²: mean and population variance over the channels of the group and size)
    Backward: dx̂ = dy γ,  dx = (dx̂ − mean(dx̂) − x̂ mean(dx̂ x̂))/√(σ² + eps)  (means over the group),
              dγ = Σ dy x̂,  dβ = Σ dy   (sums over batch and size)

    With num_groups = C every channel is a group of its own: instance normalisation. With
    num_groups = 1 all of an example is one group. A group of equal values gives β as long as
    eps > 0.

    Shapes: x, y (N, C, ...) with at least one channel and one position, gamma, beta (C,); G is
    num_groups and divides C.
    Raises ShapeError where these do not fit, ArgumentError for a num_groups that does not divide C
    or eps < 0.
    Source: Wu, He, Group normalization (2018), section 3; Ulyanov, Vedaldi, Lempitsky, Instance
    normalization: the missing ingredient for fast stylization (2016).
    """
    xp = array_namespace(x)
    grouped = (x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
    x_groups = xp.reshape(x, grouped)
    mean = xp.mean(x_groups, axis=-1, keepdims=True)
    centred = x_groups - mean
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    inv_std = 1.0 / xp.sqrt(variance + eps)
    x_hat = xp.reshape(centred * inv_std, x.shape)
    channels = (1, x.shape[1], *(1 for _ in x.shape[2:]))
    y = xp.reshape(gamma, channels) * x_hat + xp.reshape(beta, channels)
    return y, Cache(x_hat, inv_std, gamma)


@operation
def backward(
    dy: Float[Array, "N C *size"], cache: Cache
) -> tuple[Float[Array, "N C *size"], Float[Array, "C"], Float[Array, "C"]]:
    """dx̂ = dy γ,  dx = (dx̂ − mean(dx̂) − x̂ mean(dx̂ x̂))/√(σ² + eps),  dγ = Σ dy x̂,  dβ = Σ dy."""
    x_hat, inv_std, gamma = cache
    xp = array_namespace(dy)
    others = (0, *range(2, len(dy.shape)))
    dgamma = xp.sum(dy * x_hat, axis=others)
    dbeta = xp.sum(dy, axis=others)
    channels = (1, dy.shape[1], *(1 for _ in dy.shape[2:]))
    grouped = (*inv_std.shape[:2], math.prod(dy.shape[1:]) // inv_std.shape[1])
    dx_hat = xp.reshape(dy * xp.reshape(gamma, channels), grouped)
    x_hat_groups = xp.reshape(x_hat, grouped)
    mean_dx_hat = xp.mean(dx_hat, axis=-1, keepdims=True)
    mean_dx_hat_x_hat = xp.mean(dx_hat * x_hat_groups, axis=-1, keepdims=True)
    dx = xp.reshape((dx_hat - mean_dx_hat - x_hat_groups * mean_dx_hat_x_hat) * inv_std, dy.shape)
    return dx, dgamma, dbeta
