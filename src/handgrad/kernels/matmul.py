"""Kernel of `ops.matmul`: the tiled product of core/matmul.h on any strides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, place
from handgrad.ops.matmul import sum_to

assert native is not None
_matmul = native.matmul


class Cache(NamedTuple):
    """Both operands: each is in the gradient of the other."""

    a: Array
    b: Array


def product(a: Array, b: Array, c: Array | None = None) -> Array:
    """a b over the last two axes, the others broadcast; transposed views cost no copy."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows, depth = a.shape[-2:]
    columns = b.shape[-1]
    if c is None:
        c = empty((*batch, rows, columns), a.dtype)
    if len(batch) == 0 or (a.ndim == 2 and b.ndim == 2):
        _multiply(a, b, c, 1, rows, columns, depth)
        return c
    matrices = np.prod(batch, dtype=int)
    a = np.broadcast_to(a, (*batch, rows, depth)).reshape(matrices, rows, depth)
    b = np.broadcast_to(b, (*batch, depth, columns)).reshape(matrices, depth, columns)
    _multiply(a, b, c, int(matrices), rows, columns, depth)
    return c


def _operand(x: Array) -> tuple[Array, tuple[int, int, int]]:
    """The memory that x, (..., rows, columns), is a view of, with its strides in values."""
    batch, row, column = (0, *x.strides)[-3:]
    steps = (batch // x.itemsize, row // x.itemsize, column // x.itemsize)
    if x.flags.c_contiguous:
        return x, steps
    if x.swapaxes(-1, -2).flags.c_contiguous:
        return x.swapaxes(-1, -2), steps
    return _operand(np.ascontiguousarray(x))


def _multiply(
    a: Array, b: Array, c: Array, batch: int, rows: int, columns: int, depth: int
) -> None:
    a_memory, a_steps = _operand(a)
    b_memory, b_steps = _operand(b)
    _matmul(a_memory, b_memory, c, batch, rows, columns, depth, a_steps, b_steps)


def forward(a: Array, b: Array, *, tile: tuple[int, int] | None = None) -> tuple[Array, Cache]:
    """C = A B; the kernel has tiles of its own, so `tile`, which shows them, changes nothing."""
    matrix_a = a[None, :] if a.ndim == 1 else a
    matrix_b = b[:, None] if b.ndim == 1 else b
    c = product(matrix_a, matrix_b)
    if a.ndim == 1:
        c = c[..., 0, :]
    if b.ndim == 1:
        c = c[..., 0]
    return c, Cache(a, b)


def backward(dc: Array, cache: Cache, out: Any = None) -> tuple[Array | None, Array | None]:
    a, b = cache
    matrix_a = a[None, :] if a.ndim == 1 else a
    matrix_b = b[:, None] if b.ndim == 1 else b
    if b.ndim == 1:
        dc = dc[..., None]
    if a.ndim == 1:
        dc = dc[..., None, :]
    da, db = (place(wanted, like) for wanted, like in zip(out or (None, None), (a, b), strict=True))
    if da is not None:
        _product_to(dc, matrix_b.swapaxes(-1, -2), da.reshape(matrix_a.shape))
    if db is not None:
        _product_to(matrix_a.swapaxes(-1, -2), dc, db.reshape(matrix_b.shape))
    return da, db


def _product_to(a: Array, b: Array, c: Array) -> None:
    """c = a b, summed over the axes along which the operand that c belongs to was broadcast."""
    if a.shape[:-2] == b.shape[:-2] == c.shape[:-2]:
        product(a, b, c)
    else:
        c[...] = sum_to(product(a, b), c)
