"""The gradients of a whole layer against a difference in one random direction of everything.

A random cotangent dy stands for whatever comes after the layer; sums and ones would hide errors in
the gradients of normalisations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.layers import Layer
from tests.tolerances import assert_close

STEP = 1e-5


def check_gradients(layer: Layer, x: np.ndarray, *, training: bool) -> None:
    """Compare ⟨backward, direction⟩ with a central difference; the layer is float64 throughout."""
    rng = np.random.default_rng(7)
    x.flags.writeable = False
    y, cache = layer.forward(x, training=training)
    dy = rng.standard_normal(y.shape)
    dy.flags.writeable = False
    dx, gradients = layer.backward(dy, cache)
    assert list(gradients) == list(layer.parameters)

    again_dx, again = layer.backward(dy, cache)
    _assert_same_bits(again_dx, dx)
    for name, gradient in gradients.items():
        _assert_same_bits(again[name], gradient)

    first = {name: array.copy() for name, array in layer.parameters.items()}
    directions = {name: rng.standard_normal(array.shape) for name, array in first.items()}
    x_direction = rng.standard_normal(x.shape) if x.dtype.kind == "f" else None

    def value(distance: float) -> float:
        layer.update_parameters({name: first[name] + distance * directions[name] for name in first})
        moved = x if x_direction is None else x + distance * x_direction
        return float(np.sum(dy * layer.forward(moved, training=training)[0]))

    expected = (value(STEP) - value(-STEP)) / (2 * STEP)
    layer.update_parameters(first)
    found = sum(float(np.sum(gradients[name] * directions[name])) for name in first)
    if x_direction is not None:
        found += float(np.sum(dx * x_direction))
    assert_close(found, expected, "finite differences", "⟨gradients, direction⟩")


def check_destinations(layer: Layer, x: np.ndarray, *, training: bool) -> None:
    """Gradients written into a flat buffer, or without dx, are the gradients that are returned."""
    y, cache = layer.forward(x, training=training)
    dy = np.random.default_rng(8).standard_normal(y.shape)
    dx, expected = layer.backward(dy, cache)

    flat = layer.bind().zeros_like()
    flat.buffer[...] = np.nan
    plain = {name: np.full_like(array, np.nan) for name, array in flat.items()}
    for places in (flat, plain):
        found_dx, found = layer.backward(dy, cache, gradients=places)
        assert found is places
        _assert_same_bits(found_dx, dx)
        for name in expected:
            _assert_same_bits(places[name], expected[name])

    no_dx, found = layer.backward(dy, cache, input_gradient=False)
    assert no_dx is None
    assert list(found) == list(expected)
    for name in expected:
        _assert_same_bits(found[name], expected[name])


def _assert_same_bits(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected, strict=True)
