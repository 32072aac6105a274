"""Kernel of `ops.dropout`: the reference's draws, then comparison and product in one sweep."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import as_residual
from handgrad.kernels import invalidate_capture, native
from handgrad.kernels.memory import empty, empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec
from handgrad.kernels.sums import add

assert native is not None
_forward, _backward = native.dropout_forward, native.dropout_backward


class Cache(NamedTuple):
    """The mask, True where a value stayed, and the scale; mask None means that all passed as is."""

    mask: Array | None
    scale: float


def forward(
    x: Array,
    p: float = 0.5,
    rng: np.random.Generator | None = None,
    *,
    training: bool = True,
    residual: Array | None = None,
) -> tuple[Array, Cache]:
    residual = as_residual(residual, x)
    if not training or p == 0.0 or rng is None:
        return x if residual is None else add(residual, x), Cache(None, 1.0)
    invalidate_capture("random numbers were drawn")
    drawn = empty(x.shape, np.float32)
    rng.random(dtype=np.float32, out=drawn)
    mask = empty(x.shape, np.bool_)
    y = empty_like(x)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    _forward(x, drawn, residual, mask, y, p, scale)
    return y, Cache(mask, scale)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    at_x = None if out is None else out[0]
    mask, scale = cache
    if mask is None and at_x is None:
        return dy
    dx = output_buffer(at_x, dy)
    if dx is None:
        return None
    if mask is None:
        dx[...] = dy
    else:
        _backward(dy, mask, dx, scale)
    return dx


SPEC: Final = KernelSpec(
    "dropout", forward, backward, adds_residual_forward=True, forward_capturable=True
)
