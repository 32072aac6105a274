"""Sums of large arrays: in parallel, into memory that was used before."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import get_engine
from handgrad.kernels import native

#: Below so many values NumPy's own sum is as quick.
_WORTH_IT: Final = 20000


def add(*terms: Array) -> Array:
    """The sum of two or three arrays of one shape, from the left; the bits are those of `+`."""
    first, second, *third = terms
    on_kernels = native is not None and get_engine() != "reference"
    if on_kernels and all(_plain(term, first) for term in terms):
        assert native is not None
        y = native.empty(first.shape, first.dtype)
        native.add_arrays(first, second, third[0] if third else None, y)
        return y
    return first + second + third[0] if third else first + second


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
