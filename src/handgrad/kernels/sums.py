"""Sums of arrays: in parallel, into memory that was used before."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.kernels import invalidate_capture, native
from handgrad.kernels.large import is_plain


def add(a: Array, b: Array) -> Array:
    """The sum of two arrays of one shape; the bits are those of `+`."""
    if _plain(a, a) and _plain(b, a):
        assert native is not None
        y = native.empty_like(a)
        native.add_arrays(a, b, y)
        return y
    invalidate_capture("arrays were added by NumPy")
    return a + b


def _plain(array: Array, first: Array) -> bool:
    """Return whether it is a C-contiguous array of floats, as the first one is."""
    return (
        is_plain(array, first.dtype)
        and array.flags.c_contiguous
        and bool(array.shape == first.shape)
    )
