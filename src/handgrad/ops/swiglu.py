"""SwiGLU: one half of the features, gated by the SiLU of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.arguments import check_halves
from handgrad.ops.special import logistic

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """x, both halves; σ(a) is cheaper to compute again than to keep."""

    x: Array


def validate(x: Array) -> None:
    check_halves("swiglu", x)


@operation
def forward(x: Float[Array, "*batch D"]) -> tuple[Float[Array, "*batch H"], Cache]:
    """Swish-gated linear unit of the two halves of the last axis, x = [a, b].

    Forward:  y = a σ(a) b,  σ(a) = 1/(1 + exp(−a))
    Backward: da = dy b σ(a) (1 + a (1 − σ(a))),  db = dy a σ(a),  dx = [da, db]

    One linear map of 2H outputs gives both halves in one product, and takes dx as it is: its first
    H rows are the W of Source, whose product goes through Swish, and the others its V.

    Shapes: x (..., 2H), y (..., H).
    Raises ShapeError where the last axis has no two halves.
    Source: Shazeer, GLU variants improve transformer (2020), section 2.
    """
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    gate = logistic(a)
    y = a * gate * b
    return y, Cache(x)


@operation
def backward(dy: Float[Array, "*batch H"], cache: Cache) -> Float[Array, "*batch D"]:
    """da = dy b σ(a) (1 + a (1 − σ(a))),  db = dy a σ(a),  dx = [da, db]."""
    x = cache.x
    xp = array_namespace(dy)
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    gate = logistic(a)
    slope = gate * (1.0 + a * (1.0 - gate))
    da = dy * b * slope
    db = dy * a * gate
    dx = xp.concat((da, db), axis=-1)
    return dx
