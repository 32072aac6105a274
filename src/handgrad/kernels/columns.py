"""Sequences side by side and apart again: copied in parallel, into memory that was used before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import get_engine
from handgrad.kernels import native

#: Below so many values NumPy's own copy is as quick.
_WORTH_IT: Final = 20000


def side_by_side(parts: Sequence[Array]) -> Array:
    """Arrays (N, T, ·) one after the other along the last axis."""
    first = parts[0]
    if native is None or not all(_plain(part, first) for part in parts):
        return array_namespace(*parts).concat(list(parts), axis=-1)
    joined = native.empty((*first.shape[:2], sum(part.shape[2] for part in parts)), first.dtype)
    start = 0
    for part in parts:
        end = start + part.shape[2]
        native.copy_columns(part, joined[:, :, start:end])
        start = end
    return joined


def columns(x: Array, start: int, end: int) -> Array:
    """x[:, :, start:end] of an array (N, T, ·), where it is large in one piece."""
    some = x[:, :, start:end]
    if native is None or not _plain(some, x):
        return some
    copied = native.empty(some.shape, some.dtype)
    native.copy_columns(some, copied)
    return copied


def _plain(array: Array, first: Array) -> bool:
    """Whether it is a large array of floats whose last axis is in one piece, as the first one."""
    return (
        type(array) is np.ndarray
        and get_engine() != "reference"
        and array.size >= _WORTH_IT
        and array.dtype in (np.float32, np.float64)
        and array.dtype == first.dtype
        and array.flags.aligned
        and array.strides[2] == array.itemsize
    )
