"""Recompute: a layer whose cache is made again in backward instead of being kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.layers.base import InputGradients, Layer, Row, Shape, merge, part
from handgrad.layers.inputs import in_own_type


class Cache(NamedTuple):
    """All that forward read: inputs, settings, and the states before it that forward changes."""

    inputs: tuple[Any, ...]
    settings: Mapping[str, Any]
    generators: Mapping[str, Any]
    buffers: Mapping[str, Array]


def forward(layer: Layer, *inputs: Any, **settings: Any) -> tuple[Any, Cache]:
    """y of a layer, and the little from which `cache_of` makes its cache again."""
    states = {name: each.bit_generator.state for name, each in layer.generators.items()}
    buffers = {name: np.array(array) for name, array in _changing(layer).items()}
    y, _ = layer.forward(*inputs, **settings)
    return y, Cache(inputs, settings, states, buffers)


def cache_of(layer: Layer, cache: Cache) -> Any:
    """The layer's own cache, by the same forward from the same states, which stay as they are."""
    generators, buffers = layer.generators, _changing(layer)
    after = {name: each.bit_generator.state for name, each in generators.items()}
    buffers_after = {name: np.array(array) for name, array in buffers.items()}
    for name, state in cache.generators.items():
        generators[name].bit_generator.state = state
    for name, array in cache.buffers.items():
        buffers[name][...] = array
    try:
        _, kept = layer.forward(*cache.inputs, **cache.settings)
    finally:
        for name, state in after.items():
            generators[name].bit_generator.state = state
        for name, array in buffers_after.items():
            buffers[name][...] = array
    return kept


def _changing(layer: Layer) -> Mapping[str, Array]:
    """The buffers that forward may write, such as running statistics."""
    frozen = layer.frozen_parameters
    return {name: array for name, array in layer.buffers.items() if name not in frozen}


class Recompute(Layer):
    """y = f(x) of the layer `inner`, keeping x alone; backward runs forward again for the rest.

    That costs one more forward and saves the memory of what `inner` keeps. Generators start where
    they stood, so that dropout draws the same masks, and gradients are the same bits as without.
    Stacks of transformer blocks do it for each block with `recompute=True`.
    Source: Chen et al., Training deep nets with sublinear memory cost (2016), section 4.
    """

    def __init__(self, inner: Layer) -> None:
        self.inner = inner
        self.layers = {"inner": inner}

    @in_own_type
    def forward(self, x: Array, *others: Array, **settings: object) -> tuple[Array, Cache]:
        return forward(self.inner, x, *others, **settings)

    def backward(  # type: ignore[override]  # of several inputs a tuple
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[InputGradients, Mapping[str, Array]]:
        dx, found = self.inner.backward(
            dy,
            cache_of(self.inner, cache),
            gradients=part(gradients, "inner"),
            input_gradient=input_gradient,
        )
        return dx, merge({"inner": found}) if gradients is None else gradients

    def output_shape(self, input_shape: Shape) -> Shape:
        return self.inner.output_shape(input_shape)

    def flops(self, input_shape: Shape) -> int:
        return self.inner.flops(input_shape)

    def input_flops(self, input_shape: Shape) -> int:
        return self.inner.input_flops(input_shape)

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        return self.inner.rows(input_shape, f"{name}.inner" if name else "inner")
