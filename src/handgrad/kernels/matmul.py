"""Kernel of `ops.matmul`: the tiled product of core/gemm/matmul.h, or vector_product.h there."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch.gradients import readable
from handgrad.geometry.axes import sum_to
from handgrad.kernels import native
from handgrad.kernels.memory import empty, output_buffer
from handgrad.kernels.spec import ROWS, STRIDED, KernelSpec

assert native is not None
_matmul = native.matmul


class Cache(NamedTuple):
    """Both operands: each is in the gradient of the other."""

    a: Array
    b: Array


def product(a: Array, b: Array, c: Array | None = None) -> Array:
    """a b over the last two axes, the others broadcast; views cost no copy, transposed or not."""
    batch = a.shape[:-2]
    same = batch == b.shape[:-2]
    if not same:
        batch = np.broadcast_shapes(batch, b.shape[:-2])
    rows, depth = a.shape[-2:]
    columns = b.shape[-1]
    if c is None:
        c = empty((*batch, rows, columns), a.dtype)
    if c.size == 0:  # of however many products
        return c
    if not same or len(batch) > 1:
        matrices = math.prod(batch)
        a = np.broadcast_to(a, (*batch, rows, depth)).reshape(matrices, rows, depth)
        b = np.broadcast_to(b, (*batch, depth, columns)).reshape(matrices, depth, columns)
        _matmul(a, b, c.reshape(matrices, rows, columns))
    else:
        _matmul(a, b, c)
    return c


def forward(a: Array, b: Array, *, tile: tuple[int, int] | None = None) -> tuple[Array, Cache]:
    """C = A B; the kernel has tiles of its own, so `tile`, which shows them, changes nothing."""
    if a.ndim == 1 or b.ndim == 1 or 1 in (*a.shape[-2:], b.shape[-1]):
        a, b = _in_rows(a), _in_rows(b)
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
    if 1 in (*dc.shape[-2:], matrix_b.shape[-2]):
        dc = _in_rows(dc)
    da, db = (
        output_buffer(wanted, like)
        for wanted, like in zip(out or (None, None), (a, b), strict=True)
    )
    if da is not None:
        _product_to(dc, matrix_b.swapaxes(-1, -2), da.reshape(matrix_a.shape))
    if db is not None:
        _product_to(matrix_a.swapaxes(-1, -2), dc, db.reshape(matrix_b.shape))
    return da, db


def _in_rows(array: Array) -> Array:
    """An operand for products with vectors, whose sums have another order in another layout."""
    own: Array = readable(array, ROWS)
    return own


def _product_to(a: Array, b: Array, c: Array) -> None:
    """c = a b, summed over the axes along which the operand that c belongs to was broadcast."""
    if a.shape[:-2] == b.shape[:-2] == c.shape[:-2]:
        product(a, b, c)
    else:
        c[...] = sum_to(product(a, b), c)


SPEC: Final = KernelSpec("matmul", forward, backward, layout=STRIDED)
