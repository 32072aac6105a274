"""SiLU, also called swish: x times its own sigmoid."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from numpy.typing import ArrayLike

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.covariances import Values, bounded, variances
from handgrad.ops.quadrature import expected_product, expected_value, slope_of, value_of
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


def _even(x: Values) -> Values:
    """f(x) − x/2, which is even."""
    return value_of(forward, x) - 0.5 * x


def _odd_slope(x: Values) -> Values:
    """f′(x) − ½, which is odd."""
    return slope_of(forward, backward, x) - 0.5


def v_transform(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f(z₁) f(z₂)] = k₁₂/4 + E[e(z₁) e(z₂)],  f(x) = x/2 + e(x), the last by a Hermite series."""
    k12, _ = bounded(k12, variances(k11), variances(k22))
    return 0.25 * k12 + expected_product(_even, k12, k11, k22, odd=False)


def v_transform_derivative(k12: ArrayLike, k11: ArrayLike, k22: ArrayLike) -> Values:
    """E[f′(z₁) f′(z₂)] = ¼ + E[e′(z₁) e′(z₂)], the last by a Hermite series."""
    return 0.25 + expected_product(_odd_slope, k12, k11, k22, odd=True)


def gaussian_mean(k11: ArrayLike) -> Values:
    """E[f(z₁)] = E[e(z₁)], by quadrature."""
    return expected_value(_even, k11)
