"""Linear: y = x Wᵀ + b, the product behind every dense layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.arguments import check_linear_map

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """x and W, for the two products of backward; of b only whether there was one."""

    x: Array
    weight: Array
    has_bias: bool


def validate(x: Array, weight: Array, bias: Array | None = None) -> None:
    check_linear_map("linear", x, weight, bias)


@operation
def forward(
    x: Float[Array, "*batch D"],
    weight: Float[Array, "E D"],
    bias: Float[Array, "E"] | None = None,
) -> tuple[Float[Array, "*batch E"], Cache]:
    """Linear map of the last axis, with a bias.

    Forward:  y = x Wᵀ + b
    Backward: dx = dy W,  dW = Σ dyᵀ x,  db = Σ dy   (sums over every row of the batch)

    Shapes: x (..., in), weight (out, in) as PyTorch keeps it, bias (out,), y (..., out).
    Raises ShapeError where these do not fit.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equation 4, with the outer
    product it leaves out; Anonymous, Transformer Layer: notițe și arhitectură (undated), section 4.
    """
    y = x @ weight.T
    if bias is not None:
        y = y + bias
    return y, Cache(x, weight, bias is not None)


@operation
def backward(
    dy: Float[Array, "*batch E"], cache: Cache
) -> tuple[Float[Array, "*batch D"], Float[Array, "E D"], Float[Array, "E"] | None]:
    """dx = dy W,  dW = Σ dyᵀ x,  db = Σ dy."""
    x, weight, has_bias = cache
    xp = array_namespace(dy)
    rows = math.prod(x.shape[:-1])
    rows_dy = xp.reshape(dy, (rows, weight.shape[0]))
    rows_x = xp.reshape(x, (rows, weight.shape[1]))
    dx = dy @ weight
    dweight = rows_dy.T @ rows_x
    dbias = xp.sum(rows_dy, axis=0) if has_bias else None
    return dx, dweight, dbias
