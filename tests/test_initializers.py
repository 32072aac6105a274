"""Initializers: scale, limits, and the same draws for the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from handgrad import initializers
from handgrad.errors import ArgumentError, ShapeError

SHAPE = (200, 300)

RANDOM = [
    initializers.xavier_uniform,
    initializers.xavier_normal,
    initializers.he_uniform,
    initializers.he_normal,
    initializers.normal,
    initializers.uniform,
    initializers.truncated_normal,
    initializers.orthogonal,
]


def test_fans_are_pytorch_s() -> None:
    assert initializers.fans((20, 30)) == (30, 20)
    assert initializers.fans((8, 4, 3, 5)) == (60, 120)
    with pytest.raises(ShapeError, match=r"shape \(3,\); allowed: two axes or more"):
        initializers.fans((3,))


@pytest.mark.parametrize("initializer", RANDOM)
def test_the_generator_is_the_only_source(initializer: Callable[..., np.ndarray]) -> None:
    first = initializer((6, 5), np.random.default_rng(3))
    again = initializer((6, 5), np.random.default_rng(3))
    other = initializer((6, 5), np.random.default_rng(4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.dtype == np.float32
    assert initializer((6, 5), np.random.default_rng(3), dtype=np.float64).dtype == np.float64


@pytest.mark.parametrize(
    ("initializer", "std"),
    [
        (initializers.xavier_uniform, math.sqrt(2 / 500)),
        (partial(initializers.xavier_normal, gain=2.0), 2 * math.sqrt(2 / 500)),
        (initializers.he_uniform, math.sqrt(2 / 300)),
        (partial(initializers.he_normal, mode="fan_out", gain=1.0), math.sqrt(1 / 200)),
        (partial(initializers.normal, std=0.02), 0.02),
        (partial(initializers.uniform, bound=0.3), 0.3 / math.sqrt(3)),
    ],
)
def test_standard_deviation(initializer: Callable[..., np.ndarray], std: float) -> None:
    values = initializer(SHAPE, np.random.default_rng(0), dtype=np.float64)
    # 60,000 draws: their deviation is known to 0.3 %, and four times that is allowed.
    assert values.std() == pytest.approx(std, rel=0.012)
    assert abs(values.mean()) < 4 * std / math.sqrt(values.size)


def test_uniform_draws_keep_their_bounds() -> None:
    values = initializers.he_uniform(SHAPE, np.random.default_rng(0), dtype=np.float64)
    assert np.abs(values).max() <= math.sqrt(6 / 300)


def test_truncated_normal_keeps_its_bounds() -> None:
    values = initializers.truncated_normal(
        SHAPE, np.random.default_rng(0), mean=1.0, std=0.5, bound=1.5, dtype=np.float64
    )
    assert np.abs(values - 1.0).max() <= 0.75
    with pytest.raises(ArgumentError, match="bound is 0; allowed: more than 0"):
        initializers.truncated_normal((2, 2), np.random.default_rng(0), bound=0)


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (3, 2, 3, 3)])
def test_orthogonal_has_orthonormal_rows_or_columns(shape: tuple[int, ...]) -> None:
    matrix = initializers.orthogonal(shape, np.random.default_rng(0), gain=2.0, dtype=np.float64)
    matrix = matrix.reshape(shape[0], -1)
    gram = matrix @ matrix.T if matrix.shape[0] < matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-14)


def test_constants_draw_nothing() -> None:
    np.testing.assert_array_equal(initializers.constant((2, 3), value=0.5), np.full((2, 3), 0.5))
    np.testing.assert_array_equal(initializers.zeros((2, 3)), np.zeros((2, 3)))


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ArgumentError, match="mode is 'fan_avg'; allowed: fan_in, fan_out"):
        initializers.he_normal((2, 3), np.random.default_rng(0), mode="fan_avg")
