"""Softmax: scores to probabilities along one axis.

The largest score is taken off because exp of a score above 709 is infinite in float64, and infinity
over infinity is no number. It changes nothing else: a factor exp(−max x) stands above and below the
fraction. What is left has no power above 1 and a sum of 1 or more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.arguments import check_axis

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The output, in which the whole Jacobian is written; x is not needed again."""

    y: Array
    axis: int


def validate(x: Array, *, axis: int = -1) -> None:
    check_axis("softmax", axis, x)


@operation
def forward(x: Float[Array, "*shape"], *, axis: int = -1) -> tuple[Float[Array, "*shape"], Cache]:
    """Softmax along `axis`, with the largest score taken off first so that nothing overflows.

    Forward:  y_i = exp(x_i − max x) / Σ_j exp(x_j − max x)
    Backward: dx_i = y_i (dy_i − Σ_j y_j dy_j)

    Where every score is −∞ (all masked), y and dx are 0.

    Shapes: x, y any shape with at least one value along `axis`.
    Raises ArgumentError or ShapeError where there is no such axis or nothing along it.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 2; Anonymous,
    Transformer Layer: notițe și arhitectură (undated), section 5; Blanchard, Higham, Higham,
    Accurately computing the log-sum-exp and softmax functions (2021), for the largest score.
    """
    xp = array_namespace(x)
    highest = xp.max(x, axis=axis, keepdims=True)
    highest = xp.where(xp.isinf(highest) & (highest < 0), xp.zeros_like(highest), highest)
    powers = xp.exp(x - highest)
    total = xp.sum(powers, axis=axis, keepdims=True)
    y = powers / xp.where(total == 0, xp.ones_like(total), total)
    return y, Cache(y, axis)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx_i = y_i (dy_i − Σ_j y_j dy_j): the product with the Jacobian, without forming it."""
    y, axis = cache
    xp = array_namespace(dy)
    expected_dy = xp.sum(y * dy, axis=axis, keepdims=True)
    dx = y * (dy - expected_dy)
    return dx


def jacobian(y: Float[Array, "*batch C"]) -> Float[Array, "*batch C C"]:
    """The full Jacobian along the last axis, ∂y_i/∂x_j = y_i (δ_ij − y_j), from softmax's output y.

    For looking at, and for checking backward on small sizes; it takes C² values per row.
    """
    xp = array_namespace(y)
    identity = xp.eye(y.shape[-1], dtype=y.dtype, device=device(y))
    column = xp.expand_dims(y, axis=-1)
    row = xp.expand_dims(y, axis=-2)
    return column * (identity - row)
