"""Calls of kernels that compute y from x, element by element, and dx from dy and one of both.

An op whose kernel keeps x needs no more than that; one that keeps y says so in a module of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec


class Cache(NamedTuple):
    """x, or y where the derivative follows from it."""

    kept: Array


def element_wise(op: str, *, keeps_output: bool = False) -> KernelSpec:
    """The calls of what `bind_activation` binds under this name.

    keeps_output: backward reads y, as `kFromOutput` says in the kernel, and not x.
    """
    native_forward = getattr(native, f"{op}_forward")
    native_backward = getattr(native, f"{op}_backward")

    def forward(x: Array) -> tuple[Array, Cache]:
        y = empty_like(x)
        native_forward(x, y)
        return y, Cache(y if keeps_output else x)

    def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
        dx = output_buffer(None if out is None else out[0], dy)
        if dx is not None:
            native_backward(dy, cache.kept, dx)
        return dx

    return KernelSpec(op, forward, backward, capturable=True)
