"""Sigmoid: any number to a value between 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.special import logistic

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The output, in which the derivative is a polynomial; x is not needed again."""

    y: Array


@operation
def forward(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Cache]:
    """Logistic sigmoid.

    Forward:  y = 1/(1 + exp(−x))
    Backward: dx = dy y (1 − y)

    No x overflows; ±∞ give exactly 0 and 1.

    Shapes: x, y any shape.
    Source: Yeung, The Deep Learning Dump (2023), section 3, with the x that its formula leaves out.
    """
    y = logistic(x)
    return y, Cache(y)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy y (1 − y)."""
    y = cache.y
    dx = dy * y * (1.0 - y)
    return dx
