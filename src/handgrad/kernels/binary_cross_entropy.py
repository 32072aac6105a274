"""Kernel of `ops.binary_cross_entropy`: loss and derivative from one exponential, in one sweep."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = (
    native.binary_cross_entropy_forward,
    native.binary_cross_entropy_backward,
)


class Cache(NamedTuple):
    """The derivative of each value's loss, and n; n is None if the loss has one value per value."""

    slope: Array
    n: int | None


def _spread(weight: Array | None, x: Array) -> Array | None:
    """The weight for every value of x."""
    if weight is None or weight.shape == x.shape:
        return weight
    return np.ascontiguousarray(np.broadcast_to(weight, x.shape))


def forward(
    x: Array,
    target: Array,
    *,
    weight: Array | None = None,
    pos_weight: Array | None = None,
    reduction: str = "mean",
) -> tuple[Array, Cache]:
    slope = empty_like(x)
    losses = empty_like(x) if reduction == "none" else None
    summed = _forward(x, target, _spread(weight, x), _spread(pos_weight, x), slope, losses)
    if losses is not None:
        return losses, Cache(slope, None)
    n = max(x.size, 1) if reduction == "mean" else 1
    return x.dtype.type(summed / n), Cache(slope, n)


def backward(dloss: Array, cache: Cache, out: Any = None) -> Array | None:
    slope, n = cache
    dx = output_buffer(None if out is None else out[0], slope)
    if dx is None:
        return None
    if n is None:
        _backward(np.asarray(dloss, dtype=slope.dtype), slope, dx, 1.0)
    else:
        _backward(None, slope, dx, float(dloss) / n)
    return dx


SPEC: Final = KernelSpec("binary_cross_entropy", forward, backward)
