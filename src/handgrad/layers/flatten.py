"""Flatten: every example as one row."""

from __future__ import annotations

import math
from collections.abc import Mapping

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.layers.base import Layer, Shape
from handgrad.layers.inputs import in_own_type


class Flatten(Layer):
    """(N, …) to (N, D) in row-major order; the cache is the shape of x."""

    capturable = True

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Shape]:
        shape = tuple(x.shape)
        return array_namespace(x).reshape(x, (shape[0], math.prod(shape[1:]))), shape

    def backward(
        self,
        dy: Array,
        cache: Shape,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        dx = array_namespace(dy).reshape(dy, cache) if input_gradient else None
        return dx, {} if gradients is None else gradients

    def output_shape(self, input_shape: Shape) -> Shape:
        return (math.prod(input_shape),)

    def flops(self, input_shape: Shape) -> int:
        return 0
