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
) -> None:
    """One step as the reference computes it; writes the parameters."""
    _step(parameter, gradient, lr, weight_decay)
