"""Kernel of `ops.geglu`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_PAIRS: Final = {
    "none": (native.geglu_forward, native.geglu_backward),
    "tanh": (native.geglu_tanh_forward, native.geglu_tanh_backward),
}


class Cache(NamedTuple):
    """x, both halves, and the form; the probability is computed again."""

    x: Array
    approximate: str


def forward(x: Array, *, approximate: str = "none") -> tuple[Array, Cache]:
    y = empty((*x.shape[:-1], x.shape[-1] // 2), x.dtype)
    _PAIRS[approximate][0](x, y)
    return y, Cache(x, approximate)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    dx = output_buffer(None if out is None else out[0], cache.x)
    if dx is not None:
        _PAIRS[cache.approximate][1](dy, cache.x, dx)
    return dx


SPEC: Final = KernelSpec("geglu", forward, backward, capturable=True)
