"""RMSProp: the gradient over the root of its mean square."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.optimizers.base import Optimizer, check_decay_rates, check_not_negative


def update(
    parameter: Array,
    gradient: Array,
    v: Array,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
) -> tuple[Array, Array]:
    """One step of RMSProp: g = ∂L/∂p + λp,  v = αv + (1 − α)g²,  p = p − lr · g/(√v + ε).

    Source: Tieleman, Hinton, Lecture 6e rmsprop: divide the gradient by a running average of its
    recent magnitude (2012), with ε outside the root as in PyTorch.
    """
    gradient = gradient + weight_decay * parameter
    v = alpha * v + (1 - alpha) * gradient**2
    parameter = parameter - lr * gradient / (v**0.5 + eps)
    return parameter, v


class RMSProp(Optimizer):
    """PyTorch's `RMSprop` without its options for momentum and centring."""

    name = "rmsprop"
    slots = ("v",)
    update = staticmethod(update)

    def __init__(
        self,
        lr: float = 1e-2,
        *,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        check_decay_rates("RMSProp", alpha=alpha)
        check_not_negative("RMSProp", eps=eps, weight_decay=weight_decay)
        super().__init__(lr, alpha=alpha, eps=eps, weight_decay=weight_decay)
