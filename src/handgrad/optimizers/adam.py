"""Adam: momentum of the gradient over the root of its second moment.

m and v are divided by 1 − β₁ᵗ and 1 − β₂ᵗ because both begin at 0: after t steps with the same g
they are (1 − β₁ᵗ) g and (1 − β₂ᵗ) g². With the division a step is about as long from the first one
on; without it the first would be (1 − β₁)/√(1 − β₂) times as long, 3.2 times with 0.9 and 0.999.
"""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.optimizers.base import Optimizer, check_betas, check_not_negative


def update(
    parameter: Array,
    gradient: Array,
    m: Array,
    v: Array,
    *,
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
) -> tuple[Array, Array, Array]:
    """One step of Adam, with bias correction; `step` counts from 1.

    g = ∂L/∂p + λp,  m = β₁m + (1 − β₁)g,  v = β₂v + (1 − β₂)g²
    m̂ = m/(1 − β₁ᵗ),  v̂ = v/(1 − β₂ᵗ),  p = p − lr · m̂/(√v̂ + ε)

    v is the second raw moment, not a variance.

    Source: Gulino, Neural Network Simplified Mathematics (2025), Adam, with its 1 − βT and √v̂
    corrected to 1 − βᵗ and √v̂ + ε; Kingma, Ba, Adam: a method for stochastic optimization (2015),
    algorithm 1.
    """
    gradient = gradient + weight_decay * parameter
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**step)
    v_hat = v / (1 - beta2**step)
    parameter = parameter - lr * m_hat / (v_hat**0.5 + eps)
    return parameter, m, v


class Adam(Optimizer):
    """Adam as PyTorch has it: `weight_decay` λ is added to the gradient (AdamW decays apart)."""

    name = "adam"
    slots = ("m", "v")
    counts_steps = True
    update = staticmethod(update)

    def __init__(
        self,
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        check_betas("Adam", betas)
        check_not_negative("Adam", eps=eps, weight_decay=weight_decay)
        super().__init__(lr, beta1=betas[0], beta2=betas[1], eps=eps, weight_decay=weight_decay)
