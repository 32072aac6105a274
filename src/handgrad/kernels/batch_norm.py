"""Kernel of `ops.batch_norm`: channel by channel, x̂ computed again going backward."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.activation import code_of
from handgrad.kernels.memory import empty, empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.batch_norm_forward, native.batch_norm_backward


class Cache(NamedTuple):
    """x, γ, β, and mean and 1/√(variance + eps) of every channel: x̂ and the value before the
    activation follow from these, and each would be one more array to write.

    Also the running statistics after this call, as the reference's cache has them.
    """

    x: Array
    gamma: Array
    beta: Array
    statistics: Array
    training: bool
    running_mean: Array
    running_var: Array
    activation: int


def forward(
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
) -> tuple[Array, Cache]:
    y = empty_like(x)
    channels = gamma.shape
    statistics = empty((*channels, 2), x.dtype)
    next_mean = empty(channels, x.dtype) if training else None
    next_var = empty(channels, x.dtype) if training else None
    code = code_of(activation)
    _forward(
        x,
        gamma,
        beta,
        running_mean,
        running_var,
        y,
        statistics,
        next_mean,
        next_var,
        momentum,
        eps,
        code,
        0.01,
    )
    if next_mean is not None and next_var is not None:
        running_mean, running_var = next_mean, next_var
    return y, Cache(x, gamma, beta, statistics, training, running_mean, running_var, code)


def backward(
    dy: Array, cache: Cache, out: Any = None
) -> tuple[Array | None, Array | None, Array | None]:
    x, gamma, beta, statistics, training, _, _, code = cache
    at_x, at_gamma, at_beta = out or (None, None, None)
    dx, dgamma, dbeta = (
        output_buffer(at_x, x),
        output_buffer(at_gamma, gamma),
        output_buffer(at_beta, gamma),
    )
    _backward(dy, x, gamma, beta, statistics, dx, dgamma, dbeta, training, code, 0.01)
    return dx, dgamma, dbeta


SPEC: Final = KernelSpec("batch_norm", forward, backward, capturable=True)
