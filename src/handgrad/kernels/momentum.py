"""Kernel of `optimizers.momentum`: one sweep, in place, over flat arrays."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.kernels import native

assert native is not None
_step = native.momentum


def update(
    parameter: Array,
    gradient: Array,
    velocity: Array,
    *,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    scale: float = 1.0,
) -> None:
    """One step of the reference on scale · gradient; writes parameters and velocity."""
    _step(parameter, gradient, velocity, lr, momentum, dampening, weight_decay, scale)
