"""Kernel of `ops.group_norm`: group by group, x̂ computed again going backward."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.group_norm_forward, native.group_norm_backward


class Cache(NamedTuple):
    """x, γ, and mean and 1/√(variance + eps) of every group (N, G, 2); x̂ follows from these, and
    would be one more array to write.
    """

    x: Array
    gamma: Array
    statistics: Array


def forward(
    x: Array, gamma: Array, beta: Array, *, num_groups: int, eps: float = 1e-5
) -> tuple[Array, Cache]:
    y = empty_like(x)
    statistics = empty((x.shape[0], num_groups, 2), x.dtype)
    _forward(x, gamma, beta, y, statistics, eps)
    return y, Cache(x, gamma, statistics)


def backward(
    dy: Array, cache: Cache, out: Any = None
) -> tuple[Array | None, Array | None, Array | None]:
    x, gamma, statistics = cache
    at_x, at_gamma, at_beta = out or (None, None, None)
    dx, dgamma, dbeta = (
        output_buffer(at_x, x),
        output_buffer(at_gamma, gamma),
        output_buffer(at_beta, gamma),
    )
    _backward(dy, x, gamma, statistics, dx, dgamma, dbeta)
    return dx, dgamma, dbeta


SPEC: Final = KernelSpec("group_norm", forward, backward, capturable=True)
