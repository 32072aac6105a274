"""Kernel of `optimizers.sgd`: one sweep, in place, over flat arrays."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.kernels import native

assert native is not None
_step = native.sgd


def update(
    parameter: Array,
    gradient: Array,
    *,
    lr: float,
    weight_decay: float,
    scale: float = 1.0,
) -> None:
    """One step of the reference on scale · gradient; writes the parameters."""
    _step(parameter, gradient, lr, weight_decay, scale)
