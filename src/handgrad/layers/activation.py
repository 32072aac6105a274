"""Activation: an element-wise function, or softmax, as a layer of its own."""

from __future__ import annotations

import math
from typing import Final

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.layers.base import OpLayer, Shape
from handgrad.layers.inputs import in_own_type
from handgrad.ops import erf, gelu, leaky_relu, relu, sigmoid, silu, sin, softmax, tanh

_OPS: Final = {
    "relu": relu,
    "leaky_relu": leaky_relu,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "gelu": gelu,
    "silu": silu,
    "erf": erf,
    "sin": sin,
    "softmax": softmax,
}


class Activation(OpLayer):
    """y = f(x) by the name of the op, with that op's options: `Activation("gelu",
    approximate="tanh")`.

    Dense and the convolutions apply an activation in the same pass, as in
    `Dense(..., activation="relu")`, which is faster than a layer of its own.
    """

    capturable = True

    def __init__(self, name: str, **options: float | str) -> None:
        if name not in _OPS:
            raise ArgumentError(f"Activation: name is {name!r}; allowed: {', '.join(_OPS)}")
        self.name = name
        self.op = _OPS[name]
        self.options = options

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, object]:
        y, cache = self.op.forward(x, **self.options)
        return y, cache

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        """One for every value, whatever the function costs."""
        return math.prod(input_shape)
