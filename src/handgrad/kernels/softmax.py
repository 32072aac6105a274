"""Kernel of `ops.softmax`: each row is read once, and stays in the cache until it is scaled."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.softmax_forward, native.softmax_backward


class Cache(NamedTuple):
    """The output, and how it is seen: (outer, width, inner), with softmax along the width."""

    y: Array
    sizes: tuple[int, int, int]


def forward(x: Array, *, axis: int = -1) -> tuple[Array, Cache]:
    y = empty_like(x)
    shape, axis = x.shape, axis % x.ndim
    sizes = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    _forward(x, y, *sizes)
    return y, Cache(y, sizes)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    dx = output_buffer(None if out is None else out[0], dy)
    if dx is not None:
        _backward(dy, cache.y, dx, *cache.sizes)
    return dx


SPEC: Final = KernelSpec("softmax", forward, backward, capturable=True)
