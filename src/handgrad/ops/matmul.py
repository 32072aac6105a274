"""Matrix product, whole or in tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.axes import sum_to
from handgrad.ops.arguments import check_size

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """Both operands: each is in the gradient of the other."""

    a: Array
    b: Array


class PartialProduct(NamedTuple):
    """The term A_it B_tj of the block C_ij."""

    i: int
    j: int
    t: int
    a: Array
    b: Array
    product: Array


def validate(a: Array, b: Array, *, tile: tuple[int, int] | None = None) -> None:
    a_shape, b_shape = tuple(a.shape), tuple(b.shape)
    if len(a_shape) == 0 or len(b_shape) == 0:
        raise ShapeError(
            f"matmul: a has shape {a_shape} and b {b_shape}; allowed: at least one axis each"
        )
    if a_shape[-1] != b_shape[-2 if len(b_shape) > 1 else -1]:
        raise ShapeError(
            f"matmul: a has shape {a_shape} and b {b_shape}; "
            f"allowed: (..., M, K) and (..., K, N) with the same K"
        )
    try:
        batch = a_shape[:-2]
        if batch != b_shape[:-2]:  # the look takes as long as a small product
            batch = np.broadcast_shapes(batch, b_shape[:-2])
    except ValueError:
        raise ShapeError(
            f"matmul: a has shape {a_shape} and b {b_shape}; "
            f"allowed: axes before the last two that broadcast"
        ) from None
    if a_shape[-1] == 0 or batch:
        check_size("matmul", "C", (*batch, *a_shape[-2:-1], *b_shape[-1:][: len(b_shape) - 1]))
    if tile is not None:
        if len(a_shape) < 2 or len(b_shape) < 2:
            raise ShapeError(
                f"matmul: a has shape {a_shape} and b {b_shape}; "
                f"allowed with tile: at least two axes each"
            )
        if len(tile) != 2 or min(tile) < 1:
            raise ArgumentError(f"matmul: tile is {tile!r}; allowed: two positive integers")


def _blocks(length: int, size: int) -> list[slice]:
    """Slices of `size`, the last one shorter if need be; one empty slice where length is 0."""
    starts = range(0, max(length, 1), size)
    return [slice(start, min(start + size, length)) for start in starts]


def partial_products(a: Array, b: Array, tile: tuple[int, int]) -> Iterator[PartialProduct]:
    """Every A_it B_tj of the tiled product C_ij = Σ_t A_it B_tj, for i, then j, then t.

    With tile = (rows, inner), blocks of A are rows × inner, blocks of B inner × rows, and blocks of
    C rows × rows; the last ones are smaller where a size is not a multiple.

    Shapes: a (..., M, K), b (..., K, N).
    Raises ShapeError where these do not fit, ArgumentError unless tile is two positive integers.
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5.
    """
    validate(a, b, tile=tile)
    rows, inner = tile
    for i, row_block in enumerate(_blocks(a.shape[-2], rows)):
        for j, column_block in enumerate(_blocks(b.shape[-1], rows)):
            for t, inner_block in enumerate(_blocks(a.shape[-1], inner)):
                a_it = a[..., row_block, inner_block]
                b_tj = b[..., inner_block, column_block]
                yield PartialProduct(i, j, t, a_it, b_tj, a_it @ b_tj)


def _tiled(a: Array, b: Array, tile: tuple[int, int]) -> Array:
    """The blocks C_ij, each the sum of its partial products, put together."""
    xp = array_namespace(a, b)
    blocks: dict[tuple[int, int], Array] = {}
    for i, j, _, _, _, product in partial_products(a, b, tile):
        blocks[i, j] = blocks[i, j] + product if (i, j) in blocks else product
    last_i, last_j = max(blocks)
    block_rows = [
        xp.concat([blocks[i, j] for j in range(last_j + 1)], axis=-1) for i in range(last_i + 1)
    ]
    return xp.concat(block_rows, axis=-2)


@operation
def forward(
    a: Float[Array, "*batch M K"],
    b: Float[Array, "*batch K N"],
    *,
    tile: tuple[int, int] | None = None,
) -> tuple[Float[Array, "*batch M N"], Cache]:
    """Matrix product of the last two axes; those before them broadcast, as in numpy.matmul.

    Forward:  C = A B;  with tile = (rows, inner): C_ij = Σ_t A_it B_tj over blocks of that size
              (`partial_products` lists every term)
    Backward: dA = dC Bᵀ,  dB = Aᵀ dC   (each summed over the axes along which it was broadcast)

    A 1-D `a` counts as one row and a 1-D `b` as one column, and that axis is dropped from C.

    Shapes: a (..., M, K) or (K,), b (..., K, N) or (K,), C (..., M, N).
    Raises ShapeError where these do not fit, ArgumentError unless tile is two positive integers.
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5.
    """
    c = a @ b if tile is None else _tiled(a, b, tile)
    return c, Cache(a, b)


@operation
def backward(
    dc: Float[Array, "*batch M N"], cache: Cache
) -> tuple[Float[Array, "*batch M K"], Float[Array, "*batch K N"]]:
    """dA = dC Bᵀ,  dB = Aᵀ dC, each summed over the axes along which it was broadcast."""
    a, b = cache
    xp = array_namespace(a, b)
    matrix_a = xp.expand_dims(a, axis=-2) if len(a.shape) == 1 else a
    matrix_b = xp.expand_dims(b, axis=-1) if len(b.shape) == 1 else b
    matrix_dc = xp.expand_dims(dc, axis=-1) if len(b.shape) == 1 else dc
    matrix_dc = xp.expand_dims(matrix_dc, axis=-2) if len(a.shape) == 1 else matrix_dc
    da = sum_to(matrix_dc @ xp.matrix_transpose(matrix_b), matrix_a)
    db = sum_to(xp.matrix_transpose(matrix_a) @ matrix_dc, matrix_b)
    return xp.reshape(da, a.shape), xp.reshape(db, b.shape)
