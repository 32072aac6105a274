"""SiLU, also called swish: x times its own sigmoid."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.special import logistic

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """x; its sigmoid is cheaper to compute again than to keep."""

    x: Array


@operation
def forward(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Cache]:
    """Sigmoid linear unit.

    Forward:  y = x σ(x),  σ(x) = 1/(1 + exp(−x))
    Backward: dx = dy σ(x) (1 + x (1 − σ(x)))

    Shapes: x, y any shape.
    Source: Elfwing, Uchibe, Doya, Sigmoid-weighted linear units for neural network function
    approximation in reinforcement learning (2018), equations 3 and 4.
    """
    gate = logistic(x)
    y = x * gate
    return y, Cache(x)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy σ(x) (1 + x (1 − σ(x)))."""
    x = cache.x
    gate = logistic(x)
    slope = gate * (1.0 + x * (1.0 - gate))
    dx = dy * slope
    return dx
