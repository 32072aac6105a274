"""Leaky ReLU: keep what is positive, shrink the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """x, whose sign picks the slope; y would not do, as the slope may be 0 or negative."""

    x: Array
    negative_slope: float


@operation
def forward(
    x: Float[Array, "*shape"], *, negative_slope: float = 0.01
) -> tuple[Float[Array, "*shape"], Cache]:
    """Leaky rectified linear unit.

    Forward:  y = x where x > 0, else negative_slope · x
    Backward: dx = dy where x > 0, else negative_slope · dy

    The derivative at x = 0 is taken as negative_slope, as in PyTorch.

    Shapes: x, y any shape.
    Source: Maas, Hannun, Ng, Rectifier nonlinearities improve neural network acoustic models
    (2013), section 2.
    """
    xp = array_namespace(x)
    y = xp.where(x > 0, x, negative_slope * x)
    return y, Cache(x, negative_slope)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy where x > 0, else negative_slope · dy."""
    x, negative_slope = cache
    xp = array_namespace(dy)
    dx = xp.where(x > 0, dy, negative_slope * dy)
    return dx
