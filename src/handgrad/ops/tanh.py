"""Tanh: any number to a value between −1 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The output, in which the derivative is a polynomial; x is not needed again."""

    y: Array


@operation
def forward(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Cache]:
    """Hyperbolic tangent.

    Forward:  y = tanh(x)
    Backward: dx = dy (1 − y²)

    Shapes: x, y any shape.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 4.
    """
    xp = array_namespace(x)
    y = xp.tanh(x)
    return y, Cache(y)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy (1 − y²)."""
    y = cache.y
    dx = dy * (1.0 - y * y)
    return dx
