"""Kernel of `ops.avg_pool2d`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.geometry.windows import Setting, inner_window, output_size, per_axis, where_it_counts
from handgrad.kernels import native
from handgrad.kernels.memory import empty, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.avg_pool2d_forward, native.avg_pool2d_backward


class Cache(NamedTuple):
    """The number of values in each window; only the shape of x."""

    count: Array
    shape: tuple[int, ...]
    sizes: tuple[int, ...]


def _inside(input_size: int, outputs: int, kernel: int, stride: int, padding: int) -> Array:
    """The number of kernel offsets of each window along one axis that lie inside the image."""
    first = np.arange(outputs) * stride - padding
    return np.minimum(first + kernel, input_size) - np.maximum(first, 0)


def forward(
    x: Array,
    kernel_size: Setting | str,
    stride: Setting | None = None,
    padding: Setting = 0,
    *,
    count_include_pad: bool = True,
) -> tuple[Array, Cache]:
    batch, channels, *input_size = x.shape
    kernel = tuple(input_size) if isinstance(kernel_size, str) else per_axis(kernel_size, 2)
    strides = kernel if stride is None else per_axis(stride, 2)
    paddings = per_axis(padding, 2)
    size = output_size(input_size, kernel, strides, paddings, (1, 1))
    inner, around = inner_window(input_size, kernel, strides, paddings, (1, 1))
    steps = where_it_counts(strides, size)
    sizes = (batch * channels, *input_size, *inner, *steps, *around, 1, 1, *size)
    if count_include_pad:
        count = np.full(size, kernel[0] * kernel[1], x.dtype)
    else:
        rows, columns = (
            _inside(*axis) for axis in zip(input_size, size, kernel, strides, paddings, strict=True)
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
