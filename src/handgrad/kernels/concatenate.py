"""Concatenating features and slicing them: in parallel, into memory that was used before."""

from __future__ import annotations

from collections.abc import Sequence

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.kernels import invalidate_capture, native
from handgrad.kernels.large import is_large, is_plain


def concatenate(parts: Sequence[Array]) -> Array:
    """Arrays (N, T, ·) concatenated along the last axis."""
    first = parts[0]
    if not all(_plain(part, first) for part in parts):
        invalidate_capture("arrays were concatenated by NumPy")
        return array_namespace(*parts).concat(list(parts), axis=-1)
    assert native is not None
    joined = native.empty((*first.shape[:2], sum(part.shape[2] for part in parts)), first.dtype)
    start = 0
    for part in parts:
        end = start + part.shape[2]
        native.copy_features(part, joined[:, :, start:end])
        start = end
    return joined


def slice_features(x: Array, start: int, end: int) -> Array:
    """x[:, :, start:end] of an array (N, T, ·): a contiguous copy of a large one, else a view."""
    some = x[:, :, start:end]
    if not (_plain(some, x) and is_large(some, x.dtype)):
        return some
    assert native is not None
    copied = native.empty(some.shape, some.dtype)
    native.copy_features(some, copied)
    return copied


def _plain(array: Array, first: Array) -> bool:
    """True for an array of floats whose last axis is contiguous, as the first one."""
    return is_plain(array, first.dtype) and bool(array.strides[2] == array.itemsize)
