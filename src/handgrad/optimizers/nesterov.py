"""Nesterov: momentum that looks one step ahead."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.optimizers.base import Optimizer, check_decay_rates, check_not_negative


def update(
    parameter: Array,
    gradient: Array,
    velocity: Array,
    *,
    lr: float,
    momentum: float,
    weight_decay: float,
) -> tuple[Array, Array]:
    """One step of Nesterov momentum.

    g = ∂L/∂p + λp,  μ = βμ + g,  p = p − lr · (g + βμ)

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning
    (2013), with p standing for their look-ahead point, as in PyTorch.
    """
    gradient = gradient + weight_decay * parameter
    velocity = momentum * velocity + gradient
    parameter = parameter - lr * (gradient + momentum * velocity)
    return parameter, velocity


class Nesterov(Optimizer):
    """PyTorch's `SGD(momentum=β, nesterov=True)`."""

    name = "nesterov"
    slots = ("velocity",)
    update = staticmethod(update)

    def __init__(
        self, lr: float = 1e-3, *, momentum: float = 0.9, weight_decay: float = 0.0
    ) -> None:
        check_decay_rates("Nesterov", momentum=momentum)
        check_not_negative("Nesterov", weight_decay=weight_decay)
        super().__init__(lr, momentum=momentum, weight_decay=weight_decay)
