"""Sums of large arrays: in parallel, into memory that was used before."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import get_engine
from handgrad.kernels import native

#: Below so many values NumPy's own sum is as quick.
_WORTH_IT: Final = 20000


def add(a: Array, b: Array) -> Array:
    """The sum of two arrays of one shape; the bits are those of `+`."""
    on_kernels = native is not None and get_engine() != "reference"
    if on_kernels and _plain(a, a) and _plain(b, a):
        assert native is not None
        y = native.empty_like(a)
        native.add_arrays(a, b, y)
        return y
    return a + b


def _plain(array: Array, first: Array) -> bool:
    """Whether it is a large C-contiguous array of floats, as the first one is."""
    return (
        type(array) is np.ndarray
        and array.size >= _WORTH_IT
        and array.dtype in (np.float32, np.float64)
        and array.flags.c_contiguous
        and array.flags.aligned
        and array.dtype == first.dtype
        and array.shape == first.shape
    )
