"""Arrays for kernel outputs, from memory that is used again instead of fresh pages every step."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import SKIP, check_buffer
from handgrad.kernels import native

assert native is not None

#: `empty(shape, dtype)`: an uninitialised C-contiguous NumPy array, 64-byte aligned when large.
empty = native.empty
#: `empty_like(array)`: the same, of the shape and type of another.
empty_like = native.empty_like
_copy_indices = native.copy_indices


def empty_as(like: Array, shape: tuple[int, ...]) -> Array:
    """An uninitialised array of the type of `like`, its leading axes in the same order in memory.

    The last axis is contiguous. A broadcast axis has no position in memory; then the order is C's.
    """
    strides = like.strides
    if like.flags.c_contiguous or 0 in strides:
        return empty(shape, like.dtype)
    order = sorted(range(like.ndim - 1), key=lambda axis: -abs(strides[axis]))
    order.append(like.ndim - 1)
    memory = empty(tuple(shape[axis] for axis in order), like.dtype)
    return memory.transpose(np.argsort(order))


def output_buffer(wanted: Any, like: Array, shape: tuple[int, ...] | None = None) -> Array | None:
    """The array that a gradient is written to: None for SKIP, a new one for None, else `wanted`.

    It has the type of `like`, and its shape unless another is given. Raises ArgumentError where
    `wanted` cannot take it.
    """
    if wanted is None:
        return empty_like(like) if shape is None else empty(shape, like.dtype)
    if wanted is SKIP:
        return None
    check_buffer(wanted, like.shape if shape is None else shape, like.dtype)
    return wanted


def indices(array: Array) -> Array:
    """A copy of indices, C-contiguous and of int64 as the dispatch gives them, for a cache to keep.

    The caller may change its own before backward.
    """
    copy = empty(array.shape, np.int64)
    _copy_indices(array, copy)
    return copy
