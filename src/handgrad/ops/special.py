"""Two functions that the array API lacks, or whose plain formula overflows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from array_api_compat import array_namespace

from handgrad.arrays import Array

if TYPE_CHECKING:
    from jaxtyping import Float

#: Cody's minimax coefficients, highest power first: numerator and denominator in x² of erf(x)/x
#: for |x| ≤ 0.5, and in |x| of erfc(|x|) exp(x²) beyond.
_CENTRE_TOP: Final = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_CENTRE_BOTTOM: Final = (
    1.0,
    2.36012909523441209e1,
    2.44024637934444173e2,
    1.28261652607737228e3,
    2.84423683343917062e3,
)
_TAIL_TOP: Final = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_TAIL_BOTTOM: Final = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Horner's rule."""
    value: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def erf(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Error function, 2/√π ∫₀ˣ exp(−t²) dt, within 3e-16 in float64 and 3e-7 in float32.

    Source: Cody, Rational Chebyshev approximations for the error function (1969).
    """
    xp = array_namespace(x)
    centre = xp.clip(x, -0.5, 0.5)
    square = centre * centre
    near = centre * _polynomial(_CENTRE_TOP, square) / _polynomial(_CENTRE_BOTTOM, square)
    distance = xp.clip(xp.abs(x), 0.5, 6.0)  # erf(6) is 1 in float64
    complement = _polynomial(_TAIL_TOP, distance) / _polynomial(_TAIL_BOTTOM, distance)
    far = xp.sign(x) * (1.0 - xp.exp(-distance * distance) * complement)
    return xp.where(xp.abs(x) <= 0.5, near, far)


def logistic(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """1/(1 + exp(−x)), computed from exp(−|x|), which cannot overflow."""
    xp = array_namespace(x)
    decay = xp.exp(-xp.abs(x))
    top = xp.where(x >= 0, xp.ones_like(x), decay)
    return top / (1.0 + decay)
