"""Kernel of `ops.swiglu`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.swiglu_forward, native.swiglu_backward


class Cache(NamedTuple):
    """x, both halves; σ(a) is computed again."""

    x: Array


def forward(x: Array) -> tuple[Array, Cache]:
    y = empty((*x.shape[:-1], x.shape[-1] // 2), x.dtype)
    _forward(x, y)
    return y, Cache(x)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    dx = output_buffer(None if out is None else out[0], cache.x)
    if dx is not None:
        _backward(dy, cache.x, dx)
    return dx


SPEC: Final = KernelSpec("swiglu", forward, backward, capturable=True)
