"""Kernel of `ops.cross_entropy`: row by row, with three numbers kept of each."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, indices, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward_indices, _backward_indices = (
    native.cross_entropy_forward_indices,
    native.cross_entropy_backward_indices,
)
_forward_probabilities, _backward_probabilities = (
    native.cross_entropy_forward_probabilities,
    native.cross_entropy_backward_probabilities,
)


class Cache(NamedTuple):
    """x, target and weight; of every row max x, log Σ exp(x − max x) and Σ q in `kept`.

    With these p and q are computed again, so neither is stored. `sizes` is x as (outer, classes,
    inner), `options` the rest of native's arguments; `divisor` is what the sum was divided by, an
    array, and None with "none".
    """

    x: Array
    target: Array
    weight: Array | None
    kept: Array
    sizes: tuple[int, int, int]
    options: tuple[Any, ...]
    divisor: Array | None


def forward(
    x: Array,
    target: Array,
    *,
    weight: Array | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> tuple[Array, Cache]:
    shape = x.shape
    axis = 0 if len(shape) == 1 else 1
    inner = math.prod(shape[2:])
    outer = shape[0] if axis else 1
    sizes = outer, shape[axis], inner
    kept = empty((4, outer * inner), x.dtype)
    loss, divisor = empty((), x.dtype), empty((), np.float64)
    summing = kept, loss, divisor, reduction == "mean", *sizes
    options: tuple[Any, ...]
    if target.ndim < len(shape):
        target = indices(target)
        options = label_smoothing, ignore_index
        _forward_indices(x, target, weight, *summing, *options)
    else:
        options = (label_smoothing,)
        _forward_probabilities(x, target, weight, *summing, *options)
    if reduction == "none":
        each = kept[3].reshape(shape[:axis] + shape[axis + 1 :])
        return each, Cache(x, target, weight, kept, sizes, options, None)
    return loss, Cache(x, target, weight, kept, sizes, options, divisor)


def backward(dloss: Array, cache: Cache, out: Any = None) -> Array | None:
    x, target, weight, kept, sizes, options, divisor = cache
    dx = output_buffer(None if out is None else out[0], x)
    if dx is None:
        return None
    native_backward = _backward_indices if len(options) == 2 else _backward_probabilities
    dloss = np.asarray(dloss, dtype=x.dtype)
    native_backward(dloss, divisor, x, target, weight, kept, dx, *sizes, *options)
    return dx


# The scores are the largest array of some models, so that their gradient may take their memory.
SPEC: Final = KernelSpec("cross_entropy", forward, backward, overwrites_cache=True, capturable=True)
