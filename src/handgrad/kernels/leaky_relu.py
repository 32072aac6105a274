"""Kernel of `ops.leaky_relu`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.leaky_relu_forward, native.leaky_relu_backward


class Cache(NamedTuple):
    """x, whose sign picks the slope."""

    x: Array
    negative_slope: float


def forward(x: Array, *, negative_slope: float = 0.01) -> tuple[Array, Cache]:
    y = empty_like(x)
    _forward(x, y, negative_slope)
    return y, Cache(x, negative_slope)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    dx = output_buffer(None if out is None else out[0], dy)
    if dx is not None:
        _backward(dy, cache.x, dx, cache.negative_slope)
    return dx


SPEC: Final = KernelSpec("leaky_relu", forward, backward, capturable=True)
