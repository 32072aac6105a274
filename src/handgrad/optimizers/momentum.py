"""Momentum: down an average of the gradients, in its averaged and its classical form."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.ops.arguments import check_choice
from handgrad.optimizers.base import Optimizer, check_decay_rates, check_not_negative


def update(
    parameter: Array,
    gradient: Array,
    velocity: Array,
    *,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
) -> tuple[Array, Array]:
    """One step of momentum: g = ∂L/∂p + λp,  μ = βμ + (1 − τ)g,  p = p − lr · μ.

    τ = β is the averaged form, τ = 0 the classical one.

    Source: Gulino, Neural Network Simplified Mathematics (2025), momentum, for the averaged form.
    """
    gradient = gradient + weight_decay * parameter
    velocity = momentum * velocity + (1 - dampening) * gradient
    parameter = parameter - lr * velocity
    return parameter, velocity


class Momentum(Optimizer):
    """SGD with momentum β, from μ = 0.

    `form="averaged"`: μ = βμ + (1 − β)g, an exponential average, so that lr keeps its meaning.
    `form="classical"`: μ = βμ + g, PyTorch's `SGD(momentum=β)`.

    The averaged form with lr is the classical form with lr · (1 − β). PyTorch's `dampening=β`
    differs in its first step, which takes μ = g.
    """

    name = "momentum"
    slots = ("velocity",)
    update = staticmethod(update)

    def __init__(
        self,
        lr: float = 1e-3,
        *,
        momentum: float = 0.9,
        form: str = "averaged",
        weight_decay: float = 0.0,
    ) -> None:
        check_decay_rates("Momentum", momentum=momentum)
        check_not_negative("Momentum", weight_decay=weight_decay)
        check_choice("Momentum", "form", form, ("averaged", "classical"))
        dampening = momentum if form == "averaged" else 0.0
        super().__init__(lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay)
