"""Dense: a linear map and its activation in one op, h = f(x Wᵀ + b)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.activation import activate, activation_gradient, check_activation
from handgrad.ops.arguments import check_linear_map

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """x and W for the two products of backward, and a, from which f′(a) is computed again.

    Of b only whether there was one; the rest says which f it was.
    """

    x: Array
    weight: Array
    a: Array
    has_bias: bool
    activation: str
    negative_slope: float
    approximate: str


def validate(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    activation: str = "identity",
    negative_slope: float = 0.01,
    approximate: str = "none",
) -> None:
    check_linear_map("dense", x, weight, bias)
    check_activation("dense", activation, approximate)


@operation
def forward(
    x: Float[Array, "*batch D"],
    weight: Float[Array, "E D"],
    bias: Float[Array, "E"] | None = None,
    *,
    activation: str = "identity",
    negative_slope: float = 0.01,
    approximate: str = "none",
) -> tuple[Float[Array, "*batch E"], Cache]:
    """Dense layer: linear map of the last axis, bias, activation.

    Forward:  a = x Wᵀ + b,  h = f(a)
    Backward: da = dh f′(a),  dx = da W,  dW = Σ daᵀ x,  db = Σ da   (sums over the batch's rows)

    `activation` is identity, relu, leaky_relu (with `negative_slope`), sigmoid, tanh, gelu (with
    `approximate`), silu, erf or sin; the value at a kink is that of the op of that name.

    Shapes: x (..., in), weight (out, in) as PyTorch keeps it, bias (out,), h (..., out).
    Raises ShapeError where these do not fit, ArgumentError for an unknown activation.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equations 3 to 5: the
    outer products, and the next layer's weight, put right.
    """
    a = x @ weight.T
    if bias is not None:
        a = a + bias
    h = activate(a, activation, negative_slope=negative_slope, approximate=approximate)
    cache = Cache(x, weight, a, bias is not None, activation, negative_slope, approximate)
    return h, cache


@operation
def backward(
    dh: Float[Array, "*batch E"], cache: Cache
) -> tuple[Float[Array, "*batch D"], Float[Array, "E D"], Float[Array, "E"] | None]:
    """da = dh f′(a),  dx = da W,  dW = Σ daᵀ x,  db = Σ da."""
    x, weight, a, has_bias, activation, negative_slope, approximate = cache
    xp = array_namespace(dh)
    da = activation_gradient(
        dh, a, activation, negative_slope=negative_slope, approximate=approximate
    )
    rows = math.prod(x.shape[:-1])
    rows_da = xp.reshape(da, (rows, weight.shape[0]))
    rows_x = xp.reshape(x, (rows, weight.shape[1]))
    dx = da @ weight
    dweight = rows_da.T @ rows_x
    dbias = xp.sum(rows_da, axis=0) if has_bias else None
    return dx, dweight, dbias
