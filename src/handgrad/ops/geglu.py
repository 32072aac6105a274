"""GEGLU: one half of the features, gated by the GELU of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.arguments import check_choice, check_halves
from handgrad.ops.gelu import APPROXIMATIONS, CUBIC, INV_SQRT_2_PI, SQRT_2_OVER_PI, SQRT_HALF
from handgrad.ops.special import erf

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """x, both halves, and the form; the probability is computed again."""

    x: Array
    approximate: str


def validate(x: Array, *, approximate: str = "none") -> None:
    check_halves("geglu", x)
    check_choice("geglu", "approximate", approximate, APPROXIMATIONS)


@operation
def forward(
    x: Float[Array, "*batch D"], *, approximate: str = "none"
) -> tuple[Float[Array, "*batch H"], Cache]:
    """GELU-gated linear unit of the two halves of the last axis, x = [a, b].

    Forward:  y = a Φ(a) b,  Φ(a) = ½ (1 + erf(a/√2))
              tanh form: Φ(a) ≈ ½ (1 + tanh u),  u = √(2/π) (a + 0.044715 a³)
    Backward: da = dy b (Φ(a) + a φ(a)),  db = dy a Φ(a),  dx = [da, db],  φ(a) = exp(−a²/2)/√(2π)
              tanh form: φ(a) ≈ ½ (1 − tanh² u) √(2/π) (1 + 3 · 0.044715 a²)

    One linear map of 2H outputs gives both halves in one product, and takes dx as it is: its first
    H rows are the W of Source, whose product goes through GELU, and the others its V.

    Shapes: x (..., 2H), y (..., H).
    Raises ShapeError where the last axis has no two halves, ArgumentError for another
    `approximate`.
    Source: Shazeer, GLU variants improve transformer (2020), section 2; Hendrycks, Gimpel, Gaussian
    error linear units (2016), section 2.
    """
    xp = array_namespace(x)
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    if approximate == "tanh":
        u = SQRT_2_OVER_PI * (a + CUBIC * a * a * a)
        probability = 0.5 * (1.0 + xp.tanh(u))
    else:
        probability = 0.5 * (1.0 + erf(SQRT_HALF * a))
    y = a * probability * b
    return y, Cache(x, approximate)


@operation
def backward(dy: Float[Array, "*batch H"], cache: Cache) -> Float[Array, "*batch D"]:
    """da = dy b (Φ(a) + a φ(a)),  db = dy a Φ(a),  dx = [da, db]; Φ in the form of forward."""
    x, approximate = cache
    xp = array_namespace(dy)
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    if approximate == "tanh":
        u = SQRT_2_OVER_PI * (a + CUBIC * a * a * a)
        tanh_u = xp.tanh(u)
        probability = 0.5 * (1.0 + tanh_u)
        du = SQRT_2_OVER_PI * (1.0 + 3.0 * CUBIC * a * a)
        density = 0.5 * (1.0 - tanh_u * tanh_u) * du
    else:
        probability = 0.5 * (1.0 + erf(SQRT_HALF * a))
        density = INV_SQRT_2_PI * xp.exp(-0.5 * a * a)
    da = dy * b * (probability + a * density)
    db = dy * a * probability
    dx = xp.concat((da, db), axis=-1)
    return dx
