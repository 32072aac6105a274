"""Positions: an offset for decoding, gradients of learned rows, positions that are not there."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ShapeError
from handgrad.layers import LearnedPositions, PositionalEncoding


def _learned() -> LearnedPositions:
    return LearnedPositions(6, 3, rng=np.random.default_rng(0), dtype=np.float64)


@pytest.mark.parametrize("layer", [PositionalEncoding(), _learned()], ids=["sines", "learned"])
def test_an_offset_goes_on_where_another_call_ended(
    layer: PositionalEncoding | LearnedPositions,
) -> None:
    x = np.random.default_rng(1).standard_normal((2, 5, 3))
    whole, _ = layer.forward(x)
    rest, _ = layer.forward(x[:, 3:], offset=3)
    np.testing.assert_array_equal(rest, whole[:, 3:])


def test_a_learned_row_gets_the_gradients_of_its_position() -> None:
    layer = _learned()
    y, cache = layer.forward(np.zeros((2, 2, 3)), offset=3)
    np.testing.assert_array_equal(y, np.broadcast_to(layer.weight[3:5], (2, 2, 3)))
    dy = np.random.default_rng(2).standard_normal((2, 2, 3))
    dx, gradients = layer.backward(dy, cache)
    np.testing.assert_array_equal(dx, dy)
    np.testing.assert_allclose(gradients["weight"][3:5], dy.sum(axis=0), rtol=1e-15)
    np.testing.assert_array_equal(gradients["weight"][[0, 1, 2, 5]], 0.0)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ShapeError, match="5 steps from position 2 on; allowed: positions 0 to 5"):
        _learned().forward(np.zeros((1, 5, 3)), offset=2)
    with pytest.raises(ShapeError, match=r"x has shape \(5, 3\); allowed: \(N, T, 3\)"):
        _learned().forward(np.zeros((5, 3)))
    with pytest.raises(ShapeError, match="7 steps from position 0 on"):
        _learned().output_shape((7, 3))
    with pytest.raises(ShapeError, match=r"an example has shape \(3,\); allowed: \(T, D\)"):
        PositionalEncoding().output_shape((3,))
