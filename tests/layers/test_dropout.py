"""Dropout: its own generator, and the gradient of the mask that was drawn."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.layers import Dropout


def test_the_generator_s_state_repeats_the_mask() -> None:
    dropout = Dropout(0.5, rng=np.random.default_rng(4))
    x = np.ones((6, 7), np.float32)
    state = dropout.generators["rng"].bit_generator.state
    first, _ = dropout.forward(x, training=True)
    second, _ = dropout.forward(x, training=True)
    assert not np.array_equal(first, second)
    dropout.generators["rng"].bit_generator.state = state
    np.testing.assert_array_equal(dropout.forward(x, training=True)[0], first)


def test_the_gradient_passes_where_the_value_did() -> None:
    dropout = Dropout(0.25, rng=np.random.default_rng(4))
    x = np.random.default_rng(0).standard_normal((6, 7))
    y, cache = dropout.forward(x, training=True)
    dy = np.random.default_rng(1).standard_normal((6, 7))
    dx, gradients = dropout.backward(dy, cache)
    np.testing.assert_array_equal(dx, np.where(y == 0, 0.0, dy * (1 / 0.75)))
    assert gradients == {}


def test_inference_draws_nothing() -> None:
    dropout = Dropout(0.5, rng=np.random.default_rng(4))
    state = dropout.rng.bit_generator.state
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(dropout.forward(x)[0], x)
    assert dropout.rng.bit_generator.state == state


def test_p_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"Dropout: p is 1\.5; allowed: 0 to 1"):
        Dropout(1.5, rng=np.random.default_rng(0))
