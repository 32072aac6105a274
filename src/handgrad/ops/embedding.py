"""Embedding: one row of a table per token."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ArgumentError, ShapeError
from handgrad.ops.arguments import check_size

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Cache(NamedTuple):
    """The tokens, and the number of rows of the table; the gradient does not need its values."""

    tokens: Array
    rows: int
    padding_idx: int | None


def validate(tokens: Array, weight: Array, *, padding_idx: int | None = None) -> None:
    if len(weight.shape) != 2:
        raise ShapeError(f"embedding: weight has shape {tuple(weight.shape)}; allowed: (V, D)")
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise ArgumentError(
            f"embedding: padding_idx is {padding_idx}; allowed: {-rows} to {rows - 1}"
        )
    check_size("embedding", "y", (*tokens.shape, weight.shape[1]))


def validate_values(tokens: Array, weight: Array, *, padding_idx: int | None = None) -> None:
    rows = weight.shape[0]
    known = isinstance(tokens, np.ndarray) and tokens.size > 0
    if known and not (tokens.min() >= 0 and tokens.max() < rows):
        raise ArgumentError(
            f"embedding: tokens go from {tokens.min()} to {tokens.max()}; "
            f"allowed: 0 to {rows - 1}, because weight has {rows} rows"
        )


@operation
def forward(
    tokens: Int[Array, "*batch"],
    weight: Float[Array, "V D"],
    *,
    padding_idx: int | None = None,
) -> tuple[Float[Array, "*batch D"], Cache]:
    """Table lookup.

    Forward:  y_n = W[token_n]
    Backward: dW[v] = Σ dy_n over every n with token_n = v

    The row `padding_idx` (counted from the end if negative) is looked up like any other, and its
    gradient is 0. Tokens have no gradient, so backward returns dW alone.

    Shapes: tokens any shape, weight (V, D), y (*tokens.shape, D).
    Raises ShapeError unless weight has two axes, ArgumentError for a token or a padding_idx
    outside the table (tokens are looked at only if they are a NumPy array).
    Source: Gulino, Neural Network Simplified Mathematics (2025), embedding layer.
    """
    xp = array_namespace(weight)
    flat_tokens = xp.reshape(tokens, (math.prod(tokens.shape),))
    y = xp.reshape(xp.take(weight, flat_tokens, axis=0), (*tokens.shape, weight.shape[1]))
    if padding_idx is not None and padding_idx < 0:
        padding_idx = weight.shape[0] + padding_idx
    return y, Cache(tokens, weight.shape[0], padding_idx)


@operation
def backward(dy: Float[Array, "*batch D"], cache: Cache) -> Float[Array, "V D"]:
    """dW = one_hot(tokens)ᵀ dy, the sum over equal tokens written as a product."""
    tokens, rows, padding_idx = cache
    xp = array_namespace(dy)
    count = math.prod(tokens.shape)
    token_column = xp.reshape(tokens, (count, 1))
    row_numbers = xp.arange(rows, dtype=tokens.dtype, device=device(dy))
    chosen = token_column == row_numbers
    if padding_idx is not None:
        chosen = chosen & (row_numbers != padding_idx)
    one_hot = xp.astype(chosen, dy.dtype)
    dweight = one_hot.T @ xp.reshape(dy, (count, dy.shape[-1]))
    return dweight
