"""Kernel of `optimizers.nesterov`: one sweep, in place, over flat arrays."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.kernels import native

assert native is not None
_step = native.nesterov


def update(
    parameter: Array,
    gradient: Array,
    velocity: Array,
    *,
    lr: float,
    momentum: float,
    weight_decay: float,
) -> None:
    """One step as the reference computes it; writes parameters and velocity."""
    _step(parameter, gradient, velocity, lr, momentum, weight_decay)
