"""Kernel of `ops.sin`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.sin_forward, native.sin_backward


class Cache(NamedTuple):
    """x, because y has the derivative but for its sign."""

    x: Array


def forward(x: Array) -> tuple[Array, Cache]:
    y = empty_like(x)
    _forward(x, y)
    return y, Cache(x)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    dx = output_buffer(None if out is None else out[0], dy)
    if dx is not None:
        _backward(dy, cache.x, dx)
    return dx


SPEC: Final = KernelSpec("sin", forward, backward, capturable=True)
