"""Positional encoding: sines and cosines of the position, added to the features."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ShapeError
from handgrad.geometry.positions import table
from handgrad.ops.arguments import check_positions

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """Empty: the gradient needs nothing."""


def validate(x: Array, *, offset: int = 0, base: float = 10000.0) -> None:
    if len(x.shape) < 2:
        raise ShapeError(f"positional_encoding: x has shape {tuple(x.shape)}; allowed: (..., T, D)")
    check_positions("positional_encoding", x, offset, base)


@operation
def forward(
    x: Float[Array, "*batch T D"], *, offset: int = 0, base: float = 10000.0
) -> tuple[Float[Array, "*batch T D"], Cache]:
    """Sinusoidal positions added to the features of every step.

    Forward:  y_t = x_t + P_t,  P_t,2i = sin(p base^(−2i/D)),  P_t,2i+1 = cos(p base^(−2i/D)),
              p = offset + t
    Backward: dx = dy

    `offset` is the position of the first step, for a sequence that continues an earlier call.
    The table is computed in float64 and rounded to the type of x.

    Shapes: x, y (..., T, D).
    Raises ShapeError below two axes, ArgumentError unless base > 0.
    Source: Vaswani et al., Attention is all you need (2017), section 3.5; Yamanishi, DNN, CNN, RNN,
    LSTM, Attn, and Transformer (2020), section 7, with absolute positions.
    """
    xp = array_namespace(x)
    p = xp.asarray(
        table(x.shape[-2], x.shape[-1], offset=offset, base=base), dtype=x.dtype, device=device(x)
    )
    y = x + p
    return y, Cache()


@operation
def backward(dy: Float[Array, "*batch T D"], cache: Cache) -> Float[Array, "*batch T D"]:
    """dx = dy."""
    dx = dy
    return dx
