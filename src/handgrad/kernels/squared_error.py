"""Kernel of `ops.squared_error`: the difference is taken again going backward, never stored."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_sum, _values, _backward = (
    native.squared_error_sum,
    native.squared_error_values,
    native.squared_error_backward,
)


class Cache(NamedTuple):
    """x, the target, the factor of the derivative, and whether the loss has one value per value."""

    x: Array
    target: Array
    factor: float
    each: bool


def forward(x: Array, target: Array, *, reduction: str = "mean") -> tuple[Array, Cache]:
    if reduction == "none":
        losses = empty_like(x)
        _values(x, target, losses)
        return losses, Cache(x, target, 2.0, True)
    n = max(x.size, 1)
    share = {"mean": 1.0 / n, "sum": 1.0, "half_sum": 0.5}[reduction]
    loss = x.dtype.type(_sum(x, target) * share)
    return loss, Cache(x, target, 2.0 * share, False)


def backward(dloss: Array, cache: Cache, out: Any = None) -> Array | None:
    x, target, factor, each = cache
    dx = output_buffer(None if out is None else out[0], x)
    if dx is None:
        return None
    if each:
        _backward(np.asarray(dloss, dtype=x.dtype), x, target, dx, factor)
    else:
        _backward(None, x, target, dx, factor * float(dloss))
    return dx


# The scores are the largest array of some models, so that their gradient may take their memory.
SPEC: Final = KernelSpec("squared_error", forward, backward, overwrites_cache=True, capturable=True)
