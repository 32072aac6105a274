"""Standardize: every sample to mean 0 and variance 1."""

from __future__ import annotations

import math
from typing import Any

from handgrad.arrays import Array
from handgrad.layers.base import OpLayer, Shape
from handgrad.ops import standardize


class Standardize(OpLayer):
    """y = (x − μ)/√(σ² + ε) over `axes`, by default the whole matrix of each sample."""

    op = standardize

    def __init__(self, axes: int | tuple[int, ...] = (-2, -1), *, eps: float = 1e-5) -> None:
        self.axes = axes
        self.eps = eps

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        return standardize.forward(x, axes=self.axes, eps=self.eps)

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        return 5 * math.prod(input_shape)
