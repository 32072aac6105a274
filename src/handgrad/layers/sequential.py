"""Sequential: one layer after another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.kernels.sums import add
from handgrad.layers.base import (
    Layer,
    Row,
    Shape,
    backward_residual,
    first_trained,
    forward_residual,
    merge,
    part,
    walk,
)
from handgrad.layers.inputs import in_own_type


class Sequential(Layer):
    """y = fₙ(… f₂(f₁(x))); backward goes through the layers in reverse.

    Children are named by position (`0.weight`) or by keyword (`conv.weight`); the cache is the
    tuple of the children's caches. What one layer returns goes into the next as its only input; a
    layer that can take more, such as attention, is called with that alone, and of a recurrent layer
    only y goes on.

    Layers may be given without `rng`, and with None for the size of their input. With a `seed` they
    draw their first weights, in order, from the generator that it makes: at once where no size is
    None, else in `build`. Without it `build` or the trainer has the seed.
    """

    capturable = True
    adds_residual_forward = True
    adds_residual_backward = True

    def __init__(self, *layers: Layer, seed: int | None = None, **named: Layer) -> None:
        self.layers = {**{str(i): layer for i, layer in enumerate(layers)}, **named}
        self.seed = seed
        self._names = tuple(self.layers)
        self._children = tuple(self.layers.values())
        if seed is not None and not any(map(_lacks_size, self._children)):
            self.build()

    def _build(self, shape: Shape | None, rng: np.random.Generator, name: str) -> None:
        if self._lacks():
            self._construct(shape, rng, name)
        own = rng if self.seed is None else np.random.default_rng(self.seed)
        self._build_children(shape, own, name)

    def _build_children(self, shape: Shape | None, rng: np.random.Generator, name: str) -> None:
        """Give each child the shape that comes out of the one before, while one needs it."""
        for i, (child_name, child) in enumerate(self.layers.items()):
            child._build(shape, rng, f"{name}.{child_name}" if name else child_name)
            if shape is not None and any(map(_lacks_size, self._children[i + 1 :])):
                shape = child.output_shape(shape)

    def __getitem__(self, position: int) -> Layer:
        """The layer at this position."""
        return self._children[position]

    @in_own_type
    def forward(
        self, x: Array, *, training: bool = False, residual: Array | None = None
    ) -> tuple[Array, tuple[object, ...]]:
        if not self._children and residual is not None:
            x = add(residual, x)
        caches = []
        for i, layer in enumerate(self._children, start=1):
            is_last = i == len(self._children)
            x, cache = forward_residual(layer, residual if is_last else None, x, training=training)
            caches.append(cache)
        return x, tuple(caches)

    def backward(
        self,
        dy: Array,
        cache: tuple[object, ...],
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
        residual: Array | None = None,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        if type(cache) is not tuple or len(cache) != len(self._children):
            raise ArgumentError(
                f"{type(self).__name__}: the cache is {shown(cache)}; allowed: the one that "
                "forward returned; write y, cache = model.forward(x)"
            )
        # Below the first layer that is trained only dx is left to compute.
        last_needed = 0 if input_gradient else first_trained(self._children)
        found: dict[str, Mapping[str, Array]] = {}
        for i in range(len(self._children) - 1, last_needed - 1, -1):
            name = self._names[i]
            dy, found[name] = backward_residual(
                self._children[i],
                residual if i == 0 else None,
                dy,
                cache[i],
                gradients=part(gradients, name),
                input_gradient=input_gradient or i > last_needed,
            )
        if not self._children and residual is not None:
            dy = add(residual, dy)
        if gradients is None:
            gradients = merge({name: found[name] for name in self._names if name in found})
        return dy if input_gradient else None, gradients

    def output_shape(self, input_shape: Shape) -> Shape:
        for layer in self._children:
            input_shape = layer.output_shape(input_shape)
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        return sum(row.flops for row in self.rows(input_shape))

    def input_flops(self, input_shape: Shape) -> int:
        return self._children[0].input_flops(input_shape) if self._children else 0

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        rows = []
        for child_name, layer in self.layers.items():
            full_name = f"{name}.{child_name}" if name else child_name
            rows += layer.rows(input_shape, full_name)
            input_shape = layer.output_shape(input_shape)
        return rows


def _lacks_size(layer: Layer) -> bool:
    """Return whether a size of it, or of a layer in it, is None."""
    return any(each._construction.sizes for _, each in walk(layer) if each._lacks())
