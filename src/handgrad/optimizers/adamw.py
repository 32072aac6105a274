"""AdamW: Adam with the decay of the weights kept out of its averages.

As in Adam, m and v are divided by 1 − β₁ᵗ and 1 − β₂ᵗ because both begin at 0 and would be too
small at first. The decay stands outside, so that it is the same for weights of every gradient.
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
    """One step of AdamW, with bias correction; `step` counts from 1.

    p = (1 − lr λ) p
    m = β₁m + (1 − β₁)g,  v = β₂v + (1 − β₂)g²
    m̂ = m/(1 − β₁ᵗ),  v̂ = v/(1 − β₂ᵗ),  p = p − lr · m̂/(√v̂ + ε)

    Source: Loshchilov, Hutter, Decoupled weight decay regularization (2019), algorithm 2, with the
    decay scaled by lr as PyTorch has it.
    """
    parameter = (1 - lr * weight_decay) * parameter
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**step)
    v_hat = v / (1 - beta2**step)
    parameter = parameter - lr * m_hat / (v_hat**0.5 + eps)
    return parameter, m, v


class AdamW(Optimizer):
    """AdamW as PyTorch has it: the weights shrink by the factor 1 − lr · `weight_decay`."""

    name = "adamw"
    slots = ("m", "v")
    counts_steps = True
    update = staticmethod(update)

    def __init__(
        self,
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        check_betas("AdamW", betas)
        check_not_negative("AdamW", eps=eps, weight_decay=weight_decay)
        super().__init__(lr, beta1=betas[0], beta2=betas[1], eps=eps, weight_decay=weight_decay)
