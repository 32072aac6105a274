"""Kernel of `ops.standardize`: any axes, gathered into rows as layer_norm has them."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.geometry.axes import chosen_axes
from handgrad.kernels import native
from handgrad.kernels.memory import empty, empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.standardize_forward, native.standardize_backward


class Cache(NamedTuple):
    """x with its axes in `order`, and mean and 1/√(variance + eps) of every row of `width` values.

    `order` is None where the axes are the last ones already.
    """

    x: Array
    statistics: Array
    width: int
    order: tuple[int, ...] | None


def _axes_last(ndim: int, axes: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The order of axes that puts `axes` at the end, and how many they are."""
    chosen = {axis % ndim for axis in axes}
    return (*(axis for axis in range(ndim) if axis not in chosen), *sorted(chosen)), len(chosen)


def _moved_back(array: Array, order: tuple[int, ...] | None) -> Array:
    return array if order is None else np.ascontiguousarray(array.transpose(np.argsort(order)))


def forward(
    x: Array, *, axes: int | tuple[int, ...] | None = (-2, -1), eps: float = 1e-5
) -> tuple[Array, Cache]:
    moves, count = _axes_last(x.ndim, chosen_axes(axes, x.ndim))
    order = None if moves == tuple(range(x.ndim)) else moves
    if order is not None:
        x = np.ascontiguousarray(x.transpose(order))
    kept = x.ndim - count
    width = math.prod(x.shape[kept:])
    y = empty_like(x)
    statistics = empty((*x.shape[:kept], 2), x.dtype)
    _forward(x, y, statistics, width, eps)
    return _moved_back(y, order), Cache(x, statistics, width, order)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    x, statistics, width, order = cache
    dx = output_buffer(None if out is None else out[0], dy)
    if dx is None:
        return None
    if order is None:
        _backward(dy, x, statistics, dx, width)
    else:
        moved = empty_like(x)
        _backward(np.ascontiguousarray(dy.transpose(order)), x, statistics, moved, width)
        dx[...] = moved.transpose(np.argsort(order))
    return dx


SPEC: Final = KernelSpec("standardize", forward, backward)
