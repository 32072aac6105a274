"""Kernel of `ops.max_pool2d`: winners are kept as indices into the image; backward adds there."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.geometry.windows import (
    Setting,
    inner_window,
    once_per_shape,
    output_size,
    per_axis,
    where_it_counts,
)
from handgrad.kernels import native
from handgrad.kernels.memory import empty, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.max_pool2d_forward, native.max_pool2d_backward

#: Indices of the largest values are integers as wide as the values.
_INDEX_TYPES: Final = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


class Cache(NamedTuple):
    """The index of each window's value; only the shape of x."""

    winner: Array
    shape: tuple[int, ...]
    sizes: tuple[int, ...]


@once_per_shape
def _sizes(
    x: tuple[int, ...],
    kernel_size: Setting,
    stride: Setting | None,
    padding: Setting,
    dilation: Setting,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Rows and columns of y, and all sizes as native code lists them, for an x of this shape."""
    kernel = per_axis(kernel_size, 2)
    strides = kernel if stride is None else per_axis(stride, 2)
    paddings, dilations = per_axis(padding, 2), per_axis(dilation, 2)
    batch, channels, *input_size = x
    size = output_size(input_size, kernel, strides, paddings, dilations)
    kernel, paddings = inner_window(input_size, kernel, strides, paddings, dilations)
    strides, dilations = where_it_counts(strides, size), where_it_counts(dilations, kernel)
    sizes = (batch * channels, *input_size, *kernel, *strides, *paddings, *dilations, *size)
    return size, sizes


def forward(
    x: Array,
    kernel_size: Setting,
    stride: Setting | None = None,
    padding: Setting = 0,
    dilation: Setting = 1,
) -> tuple[Array, Cache]:
    size, sizes = _sizes(x.shape, kernel_size, stride, padding, dilation)
    y = empty((*x.shape[:2], *size), x.dtype)
    winner = empty(y.shape, _INDEX_TYPES[x.dtype.itemsize])
    _forward(x, y, winner, sizes)
    return y, Cache(winner, x.shape, sizes)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    dx = output_buffer(None if out is None else out[0], dy, cache.shape)
    if dx is not None:
        _backward(dy, cache.winner, dx, cache.sizes)
    return dx


SPEC: Final = KernelSpec("max_pool2d", forward, backward, capturable=True)
