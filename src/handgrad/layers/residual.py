"""Residual: a branch beside a skip connection.

In y = x + f(x), x goes on beside f because dy then reaches it whole, as one term of its gradient,
whatever f does to the other. So gradients do not fade in a deep stack, and a layer that has nothing
to add can leave x as it is by f near 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.kernels.sums import add
from handgrad.layers.base import Layer, Row, Shape, merge, part
from handgrad.layers.inputs import in_own_type


class Cache(NamedTuple):
    """The caches of the two branches; the projection's is None where there is none."""

    inner: Any
    projection: Any


class Residual(Layer):
    """y = x + f(x), or y = p(x) + f(x) with a `projection` that brings x to the shape of f(x).

    x forks, so its gradient is the sum over both ways: dx = dy ∂f/∂x + dy (or dy ∂p/∂x).
    Source: Gulino, Neural Network Simplified Mathematics (2025), with ∂y/∂x = 1 + ∂f/∂x;
    He et al., Deep residual learning for image recognition (2016).
    """

    forward_capturable = True

    def __init__(self, inner: Layer, projection: Layer | None = None) -> None:
        self.inner = inner
        self.projection = projection
        self.layers = {"inner": inner}
        if projection is not None:
            self.layers["projection"] = projection

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Cache]:
        branch, inner = self.inner.forward_y(x, training=training)
        skip, projection = x, None
        if self.projection is not None:
            skip, projection = self.projection.forward_y(x, training=training)
        if branch.shape != skip.shape:
            raise ShapeError(
                f"Residual: the branch gives shape {tuple(branch.shape)}; allowed: "
                f"{tuple(skip.shape)}, the shape it is added to"
            )
        return add(skip, branch), Cache(inner, projection)

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        found = {}
        dbranch: Any
        dbranch, found["inner"] = self.inner.backward_y(
            dy, cache.inner, gradients=part(gradients, "inner"), input_gradient=input_gradient
        )
        dskip: Any = dy
        if self.projection is not None:
            dskip, found["projection"] = self.projection.backward_y(
                dy,
                cache.projection,
                gradients=part(gradients, "projection"),
                input_gradient=input_gradient,
            )
        dx = add(dskip, dbranch) if input_gradient else None
        return dx, merge(found) if gradients is None else gradients

    def output_shape(self, input_shape: Shape) -> Shape:
        branch = self.inner.output_shape(input_shape)
        skip = input_shape
        if self.projection is not None:
            skip = self.projection.output_shape(input_shape)
        if branch != skip:
            raise ShapeError(
                f"Residual: the branch gives an example of shape {branch}; allowed: {skip}, "
                "the shape it is added to"
            )
        return branch

    def flops(self, input_shape: Shape) -> int:
        return sum(row.flops for row in self.rows(input_shape))

    def input_flops(self, input_shape: Shape) -> int:
        return sum(layer.input_flops(input_shape) for layer in self.layers.values())

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        shape = self.output_shape(input_shape)
        prefix = f"{name}." if name else ""
        rows = []
        for child_name, layer in self.layers.items():
            rows += layer.rows(input_shape, prefix + child_name)
        return [*rows, Row(name, "Residual", shape, 0, math.prod(shape))]
