"""Gated linear units: one half of the features times a function of the other."""

from __future__ import annotations

import math

from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.layers.base import OpLayer, Shape
from handgrad.layers.inputs import in_own_type
from handgrad.ops import geglu, swiglu
from handgrad.ops.arguments import check_choice
from handgrad.ops.gelu import APPROXIMATIONS


class _Gated(OpLayer):
    """y of half as many features as x, which a Dense layer before it gives in one product."""

    def output_shape(self, input_shape: Shape) -> Shape:
        if not input_shape or input_shape[-1] % 2 != 0:
            raise ShapeError(
                f"{type(self).__name__}: an example has shape {input_shape}; allowed: (..., 2 H)"
            )
        return (*input_shape[:-1], input_shape[-1] // 2)

    def flops(self, input_shape: Shape) -> int:
        """Two for every value of y, whatever the function costs."""
        return math.prod(input_shape)


class SwiGLU(_Gated):
    """y = a σ(a) b of the halves of the last axis, x = [a, b]."""

    op = swiglu
    capturable = True

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, object]:
        return swiglu.forward(x)


class GEGLU(_Gated):
    """y = a Φ(a) b of the halves of the last axis, x = [a, b]."""

    op = geglu
    capturable = True

    def __init__(self, *, approximate: str = "none") -> None:
        check_choice("GEGLU", "approximate", approximate, APPROXIMATIONS)
        self.approximate = approximate

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, object]:
        return geglu.forward(x, approximate=self.approximate)
