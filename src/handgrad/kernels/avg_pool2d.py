"""Kernel of `ops.avg_pool2d`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, output_buffer
from handgrad.kernels.spec import KernelSpec
from handgrad.ops.windows import Setting, met_window, moves, per_axis, where_it_counts

assert native is not None
_forward, _backward = native.avg_pool2d_forward, native.avg_pool2d_backward


class Cache(NamedTuple):
    """The number of values in each window; only the shape of x."""

    count: Array
    shape: tuple[int, ...]
    sizes: tuple[int, ...]


def _inside(positions: int, moved: int, kernel: int, stride: int, padding: int) -> Array:
    """The number of kernel offsets of each window along one axis that lie inside the image."""
    first = np.arange(moved) * stride - padding
    return np.minimum(first + kernel, positions) - np.maximum(first, 0)


def forward(
    x: Array,
    kernel_size: Setting | str,
    stride: Setting | None = None,
    padding: Setting = 0,
    *,
    count_include_pad: bool = True,
) -> tuple[Array, Cache]:
    batch, channels, *positions = x.shape
    kernel = tuple(positions) if isinstance(kernel_size, str) else per_axis(kernel_size, 2)
    strides = kernel if stride is None else per_axis(stride, 2)
    paddings = per_axis(padding, 2)
    size = moves(positions, kernel, strides, paddings, (1, 1))
    met, around = met_window(positions, kernel, strides, paddings, (1, 1))
    steps = where_it_counts(strides, size)
    sizes = (batch * channels, *positions, *met, *steps, *around, 1, 1, *size)
    if count_include_pad:
        count = np.full(size, kernel[0] * kernel[1], x.dtype)
    else:
        rows, columns = (
            _inside(*axis) for axis in zip(positions, size, kernel, strides, paddings, strict=True)
        )
        count = np.outer(rows, columns).astype(x.dtype)
    y = empty((batch, channels, *size), x.dtype)
    _forward(x, count, y, sizes)
    return y, Cache(count, x.shape, sizes)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    dx = output_buffer(None if out is None else out[0], dy, cache.shape)
    if dx is not None:
        _backward(dy, cache.count, dx, cache.sizes)
    return dx


SPEC: Final = KernelSpec("avg_pool2d", forward, backward, capturable=True)
