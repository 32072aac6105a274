"""GELU: x weighted by the probability that a standard normal value lies below it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.arguments import check_choice
from handgrad.ops.special import erf

if TYPE_CHECKING:
    from jaxtyping import Float

APPROXIMATIONS: Final = ("none", "tanh")
SQRT_HALF: Final = math.sqrt(0.5)
SQRT_2_OVER_PI: Final = math.sqrt(2.0 / math.pi)
INV_SQRT_2_PI: Final = 1.0 / math.sqrt(2.0 * math.pi)
CUBIC: Final = 0.044715


class Cache(NamedTuple):
    """x and the form; the probability is computed again."""

    x: Array
    approximate: str


def validate(x: Array, *, approximate: str = "none") -> None:
    check_choice("gelu", "approximate", approximate, APPROXIMATIONS)


@operation
def forward(
    x: Float[Array, "*shape"], *, approximate: str = "none"
) -> tuple[Float[Array, "*shape"], Cache]:
    """Gaussian error linear unit, exact ("none") or in its tanh form.

    Forward:  y = x Φ(x),  Φ(x) = ½ (1 + erf(x/√2))
              tanh form: Φ(x) ≈ ½ (1 + tanh u),  u = √(2/π) (x + 0.044715 x³)
    Backward: dx = dy (Φ(x) + x φ(x)),  φ(x) = exp(−x²/2)/√(2π)
              tanh form: φ(x) ≈ ½ (1 − tanh² u) √(2/π) (1 + 3 · 0.044715 x²)

    Shapes: x, y any shape.
    Raises ArgumentError for another `approximate`.
    Source: Hendrycks, Gimpel, Gaussian error linear units (2016), section 2.
    """
    xp = array_namespace(x)
    if approximate == "tanh":
        u = SQRT_2_OVER_PI * (x + CUBIC * x * x * x)
        probability = 0.5 * (1.0 + xp.tanh(u))
    else:
        probability = 0.5 * (1.0 + erf(SQRT_HALF * x))
    y = x * probability
    return y, Cache(x, approximate)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy (Φ(x) + x φ(x)), both in the form that forward used."""
    x, approximate = cache
    xp = array_namespace(dy)
    if approximate == "tanh":
        u = SQRT_2_OVER_PI * (x + CUBIC * x * x * x)
        tanh_u = xp.tanh(u)
        probability = 0.5 * (1.0 + tanh_u)
        du = SQRT_2_OVER_PI * (1.0 + 3.0 * CUBIC * x * x)
        density = 0.5 * (1.0 - tanh_u * tanh_u) * du
    else:
        probability = 0.5 * (1.0 + erf(SQRT_HALF * x))
        density = INV_SQRT_2_PI * xp.exp(-0.5 * x * x)
    dx = dy * (probability + x * density)
    return dx
