"""The gradients of a whole layer against a difference in one random direction of everything.

A random cotangent dy stands for whatever comes after the layer; sums and ones would hide errors in
the gradients of normalisations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.layers import Layer
from tests.tolerances import assert_close

STEP = 1e-5


def check_gradients(layer: Layer, *inputs: np.ndarray, training: bool, **settings: Any) -> None:
    """Compare ⟨backward, direction⟩ with a central difference; the layer is float64 throughout.

    Every forward draws the same random numbers. `settings` go to forward.
    """
    rng = np.random.default_rng(7)
    forward = _repeatable(layer, training=training, **settings)
    for x in inputs:
        x.flags.writeable = False
    y, cache = forward(*inputs)
    dy = rng.standard_normal(y.shape)
    dy.flags.writeable = False
    dinputs, gradients = layer.backward(dy, cache)
    assert list(gradients) == list(layer.parameters)

    again_dinputs, again = layer.backward(dy, cache)
    for found, expected in zip(_several(again_dinputs), _several(dinputs), strict=True):
        _assert_same_bits(found, expected)
    for name, gradient in gradients.items():
        _assert_same_bits(again[name], gradient)

    first = {name: array.copy() for name, array in layer.parameters.items()}
    directions = {name: rng.standard_normal(array.shape) for name, array in first.items()}
    input_directions = [rng.standard_normal(x.shape) if x.dtype.kind == "f" else 0 for x in inputs]

    def value(distance: float) -> float:
        layer.update_parameters({name: first[name] + distance * directions[name] for name in first})
        moved = [
            x + distance * direction if x.dtype.kind == "f" else x
            for x, direction in zip(inputs, input_directions, strict=True)
        ]
        return float(np.sum(dy * forward(*moved)[0]))

    expected = (value(STEP) - value(-STEP)) / (2 * STEP)
    layer.update_parameters(first)
    found = sum(float(np.sum(gradients[name] * directions[name])) for name in first)
    of_floats = [direction for direction in input_directions if isinstance(direction, np.ndarray)]
    given = [dx for dx in _several(dinputs) if dx is not None]
    for dx, direction in zip(given, of_floats, strict=True):
        assert dx.shape == direction.shape
        found += float(np.sum(dx * direction))
    assert_close(found, expected, "finite differences", "⟨gradients, direction⟩")


def check_destinations(layer: Layer, *inputs: np.ndarray, training: bool, **settings: Any) -> None:
    """Gradients written into a flat buffer, or without dx, are the gradients that are returned."""
    y, cache = layer.forward(*inputs, training=training, **settings)
    dy = np.random.default_rng(8).standard_normal(y.shape)
    dinputs, expected = layer.backward(dy, cache)

    flat = layer.bind().zeros_like()
    flat.buffer[...] = np.nan
    plain = {name: np.full_like(array, np.nan) for name, array in flat.items()}
    for buffers in (flat, plain):
        found_dinputs, found = layer.backward(dy, cache, gradients=buffers)
        assert found is buffers
        for here, there in zip(_several(found_dinputs), _several(dinputs), strict=True):
            _assert_same_bits(here, there)
        for name in expected:
            _assert_same_bits(buffers[name], expected[name])

    no_dx, found = layer.backward(dy, cache, input_gradient=False)
    assert no_dx is None
    assert list(found) == list(expected)
    for name in expected:
        _assert_same_bits(found[name], expected[name])


def _repeatable(layer: Layer, **settings: Any) -> Callable[..., tuple[Any, Any]]:
    """Forward from the same states of the generators every time."""
    states = [generator.bit_generator.state for generator in layer.generators.values()]

    def forward(*inputs: np.ndarray) -> tuple[Any, Any]:
        for generator, state in zip(layer.generators.values(), states, strict=True):
            generator.bit_generator.state = state
        return layer.forward(*inputs, **settings)

    return forward


def _several(dinputs: Any) -> tuple[Any, ...]:
    """The gradients of the inputs: one is bare."""
    return dinputs if isinstance(dinputs, tuple) else (dinputs,)


def _assert_same_bits(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected, strict=True)
