"""Binary cross-entropy on logits: the sigmoid is fused into the loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.arguments import check_broadcast, check_choice, check_same_shape
from handgrad.ops.special import logistic

if TYPE_CHECKING:
    from jaxtyping import Float

REDUCTIONS: Final = ("mean", "sum", "none")


class Cache(NamedTuple):
    """The derivative of each value's loss, as cheap in forward as what it is made of, and n.

    n is what the sum is divided by: the number of values for "mean", 1 otherwise.
    """

    slope: Array
    n: int


def validate(
    x: Array,
    target: Array,
    *,
    weight: Array | None = None,
    pos_weight: Array | None = None,
    reduction: str = "mean",
) -> None:
    check_same_shape("binary_cross_entropy", "target", target, x)
    if weight is not None:
        check_broadcast("binary_cross_entropy", "weight", weight, x)
    if pos_weight is not None:
        check_broadcast("binary_cross_entropy", "pos_weight", pos_weight, x)
    check_choice("binary_cross_entropy", "reduction", reduction, REDUCTIONS)


@operation
def forward(
    x: Float[Array, "*shape"],
    target: Float[Array, "*shape"],
    *,
    weight: Float[Array, "..."] | None = None,
    pos_weight: Float[Array, "..."] | None = None,
    reduction: str = "mean",
) -> tuple[Float[Array, ""] | Float[Array, "*shape"], Cache]:
    """Binary cross-entropy of logits x against targets t between 0 and 1.

    Forward:  l = −w (p t log σ(x) + (1 − t) log(1 − σ(x))),  w = weight, p = pos_weight, both 1
              if absent; log σ(x) = −max(−x, 0) − log(1 + exp(−|x|)) cannot overflow
    Backward: dl/dx = w ((1 − t) σ(x) − p t (1 − σ(x)))
    Reduced:  "mean" is Σ l/n over all n values whatever the weights, as in PyTorch; "sum"; "none"

    The target is taken as a constant and has no gradient. The loss of an empty batch is 0.

    Shapes: x, target any one shape; weight and pos_weight broadcast to it; loss (), or that of x.
    Raises ShapeError where these do not fit, ArgumentError for another reduction.
    Source: Gulino, Neural Network Simplified Mathematics (2025), losses.
    """
    xp = array_namespace(x)
    log_one_plus = xp.log1p(xp.exp(-xp.abs(x)))
    negative_part = xp.where(x < 0, -x, xp.zeros_like(x))
    positive_part = xp.where(x > 0, x, xp.zeros_like(x))
    minus_log_yes = negative_part + log_one_plus
    minus_log_no = positive_part + log_one_plus
    yes = logistic(x)
    no = logistic(-x)
    positives = target if pos_weight is None else pos_weight * target
    negatives = 1.0 - target
    losses = positives * minus_log_yes + negatives * minus_log_no
    slope = negatives * yes - positives * no
    if weight is not None:
        losses = weight * losses
        slope = weight * slope
    if reduction == "none":
        return losses, Cache(slope, 1)
    n = max(math.prod(x.shape), 1) if reduction == "mean" else 1
    return xp.sum(losses) / n, Cache(slope, n)


@operation
def backward(
    dloss: Float[Array, ""] | Float[Array, "*shape"], cache: Cache
) -> Float[Array, "*shape"]:
    """dx = dloss dl/dx / n."""
    slope, n = cache
    dx = dloss * slope / n
    return dx
