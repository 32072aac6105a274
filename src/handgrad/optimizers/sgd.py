"""SGD: straight down the gradient."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.optimizers.base import Optimizer, check_not_negative


def update(parameter: Array, gradient: Array, *, lr: float, weight_decay: float) -> tuple[Array]:
    """One step of gradient descent: g = ∂L/∂p + λp,  p = p − lr · g.

    Source: Gulino, Neural Network Simplified Mathematics (2025), stochastic gradient descent.
    """
    gradient = gradient + weight_decay * parameter
    parameter = parameter - lr * gradient
    return (parameter,)


class SGD(Optimizer):
    """Stochastic gradient descent; Momentum and Nesterov are optimizers of their own."""

    name = "sgd"
    update = staticmethod(update)

    def __init__(self, lr: float = 1e-3, *, weight_decay: float = 0.0) -> None:
        check_not_negative("SGD", weight_decay=weight_decay)
        super().__init__(lr, weight_decay=weight_decay)
