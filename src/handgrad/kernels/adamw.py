"""Kernel of `optimizers.adamw`: one sweep, in place, over flat arrays."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.kernels import native

assert native is not None
_step = native.adamw


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
    scale: float = 1.0,
) -> None:
    """One step of the reference on scale · gradient; writes parameters and m and v."""
    _step(parameter, gradient, m, v, step, lr, beta1, beta2, eps, weight_decay, scale)
