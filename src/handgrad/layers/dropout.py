"""Dropout: values switched off at random in training."""

from __future__ import annotations

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.layers.base import OpLayer, Shape
from handgrad.layers.construction import FROM_SEED
from handgrad.layers.inputs import in_own_type
from handgrad.ops import dropout


class Dropout(OpLayer):
    """y = x mask/(1 − p) in training, y = x at inference.

    The masks come from `rng`, which training advances and a checkpoint keeps (`generators`).
    """

    generator_names = ("rng",)
    op = dropout
    forward_capturable = True
    adds_residual_forward = True

    def __init__(self, p: float = 0.5, *, rng: np.random.Generator = FROM_SEED) -> None:
        if not 0 <= p <= 1:
            raise ArgumentError(f"Dropout: p is {p}; allowed: 0 to 1")
        self.p = p
        self.rng = rng

    @in_own_type
    def forward(
        self, x: Array, *, training: bool = False, residual: Array | None = None
    ) -> tuple[Array, object]:
        return dropout.forward(  # type: ignore[call-arg]
            x, self.p, self.rng, training=training, residual=residual
        )

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        """None at inference."""
        return 0
