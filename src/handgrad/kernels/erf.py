"""Kernel of `ops.erf`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.erf_forward, native.erf_backward


class Cache(NamedTuple):
    """x, because an output that is rounded to 1 does not give the derivative."""

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


SPEC: Final = KernelSpec("erf", forward, backward, capturable=True)
