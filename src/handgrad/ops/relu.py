"""ReLU: keep what is positive, drop the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The output: y > 0 exactly where x > 0, so one array serves the next op and this backward."""

    y: Array


@operation
def forward(x: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Cache]:
    """Rectified linear unit.

    Forward:  y = max(x, 0)
    Backward: dx = dy where x > 0, else 0

    The derivative at x = 0 is taken as 0. NaN stays NaN going forward.

    Shapes: x, y any shape.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 2; Anonymous,
    Transformer Layer: notițe și arhitectură (undated), section 3.
    """
    xp = array_namespace(x)
    y = xp.where(x <= 0, xp.zeros_like(x), x)
    return y, Cache(y)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy where y > 0, else 0."""
    xp = array_namespace(dy)
    dx = xp.where(cache.y > 0, dy, xp.zeros_like(dy))
    return dx
