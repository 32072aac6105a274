"""Kernel of `optimizers.rmsprop`: one sweep, in place, over flat arrays."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.kernels import native

assert native is not None
_step = native.rmsprop


def update(
    parameter: Array,
    gradient: Array,
    v: Array,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    scale: float = 1.0,
) -> None:
    """One step of the reference on scale · gradient; writes parameters and v."""
    _step(parameter, gradient, v, lr, alpha, eps, weight_decay, scale)
