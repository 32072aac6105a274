"""Batch normalisation: mean 0 and variance 1 for every channel, then an activation.

γ and β are there because without them each channel would leave with mean 0 and variance 1, whatever
the loss asks for. They are learned: with γ the standard deviation and β the mean, the layer would
give back what came in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ArgumentError, ShapeError
from handgrad.ops.activation import activate, activation_gradient, check_activation
from handgrad.ops.arguments import check_eps, check_vector

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The normalised values, 1/√(variance + eps) per channel (broadcastable to x), γ, and a, the
    value before the activation.

    Also the running statistics after this call, which are an output beside y: the caller keeps them
    for the next call. At inference they are the ones that came in.
    """

    x_hat: Array
    inv_std: Array
    gamma: Array
    a: Array
    training: bool
    running_mean: Array
    running_var: Array
    activation: str


def validate(
    x: Array,
    gamma: Array,
    beta: Array,
    running_mean: Array,
    running_var: Array,
    *,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
    activation: str = "identity",
) -> None:
    if len(x.shape) < 2:
        raise ShapeError(f"batch_norm: x has shape {tuple(x.shape)}; allowed: (N, C, ...)")
    check_vector("batch_norm", "gamma", gamma, x.shape[1])
    check_vector("batch_norm", "beta", beta, x.shape[1])
    check_vector("batch_norm", "running_mean", running_mean, x.shape[1])
    check_vector("batch_norm", "running_var", running_var, x.shape[1])
    if training and _values_per_channel(x) == 1:
        raise ShapeError(
            f"batch_norm: x has shape {tuple(x.shape)}, one value per channel; "
            f"allowed in training: at least two, because one has no variance"
        )
    if not 0.0 <= momentum <= 1.0:
        raise ArgumentError(f"batch_norm: momentum is {momentum!r}; allowed: 0 to 1")
    check_eps("batch_norm", eps)
    check_activation("batch_norm", activation)


def _batch_axes(x: Array) -> tuple[int, ...]:
    """Every axis but that of the channels."""
    return (0, *range(2, len(x.shape)))


def _values_per_channel(x: Array) -> int:
    values = 1
    for axis in _batch_axes(x):
        values *= x.shape[axis]
    return values


@operation
def forward(
    x: Float[Array, "N C *size"],
    gamma: Float[Array, "C"],
    beta: Float[Array, "C"],
    running_mean: Float[Array, "C"],
    running_var: Float[Array, "C"],
    *,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
    activation: str = "identity",
) -> tuple[Float[Array, "N C *size"], Cache]:
    """Batch normalisation per channel: batch statistics in training, running ones at inference.

    Forward:  x̂ = (x − μ)/√(σ² + eps),  a = γ x̂ + β,  y = f(a)
              training: μ, σ² the mean and population variance of the channel over batch and size;
              inference: μ = running_mean, σ² = running_var
    Running:  running_mean ← (1 − momentum) running_mean + momentum μ
              running_var  ← (1 − momentum) running_var + momentum σ² M/(M − 1)
              (M values per channel), in training; the new ones are `cache.running_mean` and
              `cache.running_var`, and the arrays passed in are not written to
    Backward: da = dy f′(a),  dx̂ = da γ,  dγ = Σ da x̂,  dβ = Σ da
              training: dx = (dx̂ − mean(dx̂) − x̂ mean(dx̂ x̂))/√(σ² + eps)
              inference: dx = dx̂/√(σ² + eps)

    The running statistics have no gradient. An empty batch leaves them as they are.

    Shapes: x, y (N, C, ...), gamma, beta, running_mean, running_var (C,).
    Raises ShapeError where these do not fit or a channel has one value only in training,
    ArgumentError for momentum outside 0 to 1 or eps < 0.
    Source: Gulino, Neural Network Simplified Mathematics (2025), batch normalisation, with the
    statistics of the batch; Ioffe, Szegedy, Batch normalization: accelerating deep network training
    by reducing internal covariate shift (2015).
    """
    xp = array_namespace(x)
    axes = _batch_axes(x)
    values = _values_per_channel(x)
    channels = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    if training:
        mean = xp.sum(x, axis=axes, keepdims=True) / max(values, 1)
        centred = x - mean
        variance = xp.sum(centred * centred, axis=axes, keepdims=True) / max(values, 1)
        unbiased = variance * (values / max(values - 1, 1))
        rate = momentum if values > 0 else 0.0
        running_mean = (1.0 - rate) * running_mean + rate * xp.reshape(mean, (-1,))
        running_var = (1.0 - rate) * running_var + rate * xp.reshape(unbiased, (-1,))
    else:
        mean = xp.reshape(running_mean, channels)
        centred = x - mean
        variance = xp.reshape(running_var, channels)
    inv_std = 1.0 / xp.sqrt(variance + eps)
    x_hat = centred * inv_std
    a = xp.reshape(gamma, channels) * x_hat + xp.reshape(beta, channels)
    y = activate(a, activation)
    return y, Cache(x_hat, inv_std, gamma, a, training, running_mean, running_var, activation)


@operation
def backward(
    dy: Float[Array, "N C *size"], cache: Cache
) -> tuple[Float[Array, "N C *size"], Float[Array, "C"], Float[Array, "C"]]:
    """dx̂ = da γ,  dx = (dx̂ − mean(dx̂) − x̂ mean(dx̂ x̂))/√(σ² + eps),  dγ = Σ da x̂,  dβ = Σ da.

    At inference the two means, which come from the batch statistics, are absent from dx.
    """
    x_hat, inv_std, gamma, a, training, _, _, activation = cache
    xp = array_namespace(dy)
    axes = _batch_axes(dy)
    da = activation_gradient(dy, a, activation)
    dgamma = xp.sum(da * x_hat, axis=axes)
    dbeta = xp.sum(da, axis=axes)
    dx_hat = da * xp.reshape(gamma, inv_std.shape)
    if training:
        values = max(_values_per_channel(dy), 1)
        mean_dx_hat = xp.sum(dx_hat, axis=axes, keepdims=True) / values
        mean_dx_hat_x_hat = xp.sum(dx_hat * x_hat, axis=axes, keepdims=True) / values
        dx = (dx_hat - mean_dx_hat - x_hat * mean_dx_hat_x_hat) * inv_std
    else:
        dx = dx_hat * inv_std
    return dx, dgamma, dbeta
