"""Rotary positions: only distances count, lengths stay, and the paper's order of features."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.ops import rotary
from tests.tolerances import assert_close


def _inputs() -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.random.default_rng(61).standard_normal((2, 1, 1, 5, 8)))  # type: ignore[return-value]


def test_scores_depend_on_the_distance_alone() -> None:
    q, k = _inputs()

    def scores(offset: int) -> np.ndarray:
        turned_q, _ = rotary.forward(q, offset=offset)
        turned_k, _ = rotary.forward(k, offset=offset)
        return np.asarray(turned_q @ turned_k.mT)

    assert_close(scores(9), scores(0), "float64")
    assert np.max(np.abs(scores(0) - q @ k.mT)) > 0.1


def test_lengths_stay_and_position_0_is_not_turned() -> None:
    x, _ = _inputs()
    y, _ = rotary.forward(x)
    assert_close(np.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1), "float64")
    np.testing.assert_array_equal(y[..., 0, :], x[..., 0, :])


def test_backward_turns_back() -> None:
    x, _ = _inputs()
    y, cache = rotary.forward(x, offset=3)
    assert_close(rotary.backward(y, cache), x, "float64")


def test_an_offset_goes_on_where_another_call_ended() -> None:
    x, _ = _inputs()
    whole, _ = rotary.forward(x)
    rest, _ = rotary.forward(x[..., 3:, :], offset=3)
    np.testing.assert_array_equal(rest, whole[..., 3:, :])


def test_the_paper_pairs_neighbours() -> None:
    """Su et al. (34): features 2i and 2i + 1 are a pair; the same after moving columns."""
    x, _ = _inputs()
    y, _ = rotary.forward(x)
    neighbours = np.arange(8).reshape(2, 4).T.ravel()
    x_paper, y_paper = x[..., neighbours], y[..., neighbours]
    angle = np.arange(5)[:, None] * 10000.0 ** (-np.arange(0, 8, 2) / 8)
    even, odd = x_paper[..., 0::2], x_paper[..., 1::2]
    assert_close(y_paper[..., 0::2], even * np.cos(angle) - odd * np.sin(angle), "float64")
    assert_close(y_paper[..., 1::2], odd * np.cos(angle) + even * np.sin(angle), "float64")


def test_the_frequencies_of_a_base_may_be_given() -> None:
    x, _ = _inputs()
    same = tuple(100.0 ** (-2.0 * i / 8) for i in range(4))
    ours, _ = rotary.forward(x, offset=3, frequencies=same)
    np.testing.assert_array_equal(ours, rotary.forward(x, offset=3, base=100.0)[0])


def test_frequencies_that_do_not_fit() -> None:
    x, _ = _inputs()
    with pytest.raises(ShapeError, match="frequencies has 3 values; allowed: 4, one for each pair"):
        rotary.forward(x, frequencies=(1.0, 0.5, 0.2))
    with pytest.raises(ArgumentError, match="allowed: a tuple of finite numbers, or None"):
        rotary.forward(x, frequencies=(1.0, 0.5, 0.2, float("nan")))
