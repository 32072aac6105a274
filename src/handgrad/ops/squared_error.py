"""Squared error between a prediction and its target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.arguments import check_choice, check_same_shape

if TYPE_CHECKING:
    from jaxtyping import Float

REDUCTIONS: Final = ("mean", "sum", "none", "half_sum")


class Cache(NamedTuple):
    """The difference, and the number that turns it into the derivative for this reduction."""

    difference: Array
    factor: float


def validate(x: Array, target: Array, *, reduction: str = "mean") -> None:
    check_same_shape("squared_error", "target", target, x)
    check_choice("squared_error", "reduction", reduction, REDUCTIONS)


@operation
def forward(
    x: Float[Array, "*shape"], target: Float[Array, "*shape"], *, reduction: str = "mean"
) -> tuple[Float[Array, ""] | Float[Array, "*shape"], Cache]:
    """Squared error, with n the number of values.

    Forward:  mean: (1/n) Σ (x − t)²,  sum: Σ (x − t)²,  half_sum: ½ Σ (x − t)²,  none: (x − t)²
    Backward: dx = dloss (x − t) · 2/n, 2, 1 or 2

    The target is taken as a constant and has no gradient. The loss of an empty batch is 0.

    Shapes: x, target any one shape; loss (), or that of x with "none".
    Raises ShapeError where the two differ, ArgumentError for another reduction.
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 4, for half_sum;
    Gulino, Neural Network Simplified Mathematics (2025), losses, for the mean.
    """
    xp = array_namespace(x)
    difference = x - target
    squares = difference * difference
    if reduction == "mean":
        n = max(math.prod(x.shape), 1)
        return xp.sum(squares) / n, Cache(difference, 2.0 / n)
    if reduction == "sum":
        return xp.sum(squares), Cache(difference, 2.0)
    if reduction == "half_sum":
        return 0.5 * xp.sum(squares), Cache(difference, 1.0)
    return squares, Cache(difference, 2.0)


@operation
def backward(
    dloss: Float[Array, ""] | Float[Array, "*shape"], cache: Cache
) -> Float[Array, "*shape"]:
    """dx = dloss · factor (x − t)."""
    difference, factor = cache
    dx = dloss * (factor * difference)
    return dx
