"""GELU: x weighted by the probability that a standard normal value lies below it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.arguments import check_choice
from handgrad.ops.covariances import Values, bounded, determinant, variances
from handgrad.ops.quadrature import expected_product, expected_value, slope_of, value_of
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


def _even(x: Values) -> Values:
    """f(x) − x/2 of the tanh form, which is even."""
    return value_of(forward, x, approximate="tanh") - 0.5 * x


def _odd_slope(x: Values) -> Values:
    """f′(x) − ½ of the tanh form, which is odd."""
    return slope_of(forward, backward, x, approximate="tanh") - 0.5


def v_transform(
    k12: ArrayLike, k11: ArrayLike, k22: ArrayLike, *, approximate: str = "none"
) -> Values:
    """E[f(z₁) f(z₂)] = k₁₂/4 + (k₁₂ α + β (k₁₁ k₂₂ − k₁₂² + k₁₂² (1/(1 + k₁₁) + 1/(1 + k₂₂))))/4.

    α = 2/π arcsin(k₁₂/√((1 + k₁₁) (1 + k₂₂))) and β = 2/π /√q, q = (1 + k₁₁) (1 + k₂₂) − k₁₂², are
    E[g(z₁) g(z₂)] and E[g′(z₁) g′(z₂)] of g(x) = erf(x/√2). The tanh form is k₁₂/4 and a Hermite
    series; see `quadrature` for its error.

    Source: Tsuchida et al., Avoiding kernel fixed points: computing with ELU and GELU infinite
    networks (2021).
    """
    validate(np.asarray(k12), approximate=approximate)
    k11, k22 = variances(k11), variances(k22)
    k12, most = bounded(k12, k11, k22)
    if approximate == "tanh":
        return 0.25 * k12 + expected_product(_even, k12, k11, k22, odd=False)
    d2 = determinant(k12, most)
    root = np.sqrt(1.0 + k11 + k22 + d2)
    # arcsin(k₁₂/√(q + k₁₂²)), which loses half of its digits near 1, as an angle.
    alpha = np.arctan2(k12, root)
    product = k12 * alpha + (d2 + k12 * k12 * (1.0 / (1.0 + k11) + 1.0 / (1.0 + k22))) / root
    return np.asarray(0.25 * k12 + product / (2.0 * math.pi))


def v_transform_derivative(
    k12: ArrayLike, k11: ArrayLike, k22: ArrayLike, *, approximate: str = "none"
) -> Values:
    """E[f′(z₁) f′(z₂)] = (1 + α + β k₁₂ (1/(1 + k₁₁) + 1/(1 + k₂₂) + 1/q))/4.

    The letters are those of `v_transform`, and so is the tanh form.
    """
    validate(np.asarray(k12), approximate=approximate)
    if approximate == "tanh":
        return 0.25 + expected_product(_odd_slope, k12, k11, k22, odd=True)
    k11, k22 = variances(k11), variances(k22)
    k12, most = bounded(k12, k11, k22)
    q = 1.0 + k11 + k22 + determinant(k12, most)
    root = np.sqrt(q)
    alpha = np.arctan2(k12, root)
    sloped = k12 * (1.0 / (1.0 + k11) + 1.0 / (1.0 + k22) + 1.0 / q) / root
    return np.asarray(0.25 + (alpha + sloped) / (2.0 * math.pi))


def gaussian_mean(k11: ArrayLike, *, approximate: str = "none") -> Values:
    """E[f(z₁)] = k₁₁/√(2π (1 + k₁₁)); the tanh form by quadrature."""
    validate(np.asarray(k11), approximate=approximate)
    if approximate == "tanh":
        return expected_value(_even, k11)
    k11 = variances(k11)
    return np.asarray(k11 / np.sqrt(2.0 * math.pi * (1.0 + k11)))
