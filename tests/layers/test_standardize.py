"""Standardize: the axes of a sample, whatever their number, and never that of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import Sequential, Standardize
from handgrad.ops import standardize
from tests.layers.gradients import check_gradients
from tests.tolerances import assert_close

SHAPES = [(4, 5), (3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 2, 3)]


def some(*shape: int) -> np.ndarray:
    return 3.0 + 2.0 * np.random.default_rng(2).standard_normal(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_sample_has_mean_0_and_variance_1(shape: tuple[int, ...]) -> None:
    layer = Standardize(eps=0.0)
    y, _ = layer.forward(some(*shape))
    rows = y.reshape(shape[0], -1)
    assert_close(rows.mean(axis=1), np.zeros(shape[0]), "float64", "mean")
    assert_close(rows.var(axis=1), np.ones(shape[0]), "float64", "variance")
    assert layer.output_shape(shape[1:]) == shape[1:]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sample_does_not_depend_on_the_others(shape: tuple[int, ...]) -> None:
    layer, x = Standardize(), some(*shape)
    y, _ = layer.forward(x)
    for n in range(shape[0]):
        alone, _ = layer.forward(x[n : n + 1])
        assert_close(alone[0], y[n], "float64", "y")


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_every_rank(shape: tuple[int, ...]) -> None:
    check_gradients(Standardize(), some(*shape), training=True)


@pytest.mark.parametrize(
    ("axes", "shape"),
    [(-1, (4, 5)), (1, (4, 5)), ((-2, -1), (2, 3, 4, 5)), ([1, 3], (2, 3, 4, 5)), (2, (2, 3, 4))],
)
def test_chosen_axes_are_those_of_the_op(axes: Any, shape: tuple[int, ...]) -> None:
    layer, x = Standardize(axes, eps=0.1), some(*shape)
    y, cache = layer.forward(x)
    own = tuple(axes) if isinstance(axes, list) else axes
    expected, expected_cache = standardize.forward(x, axes=own, eps=0.1)
    np.testing.assert_array_equal(y, expected)
    dy = np.random.default_rng(3).standard_normal(shape)
    dx, _ = layer.backward(dy, cache)
    np.testing.assert_array_equal(dx, standardize.backward(dy, expected_cache))


@pytest.mark.parametrize(
    ("axes", "shape"),
    [(0, (4, 5)), ((-2, -1), (4, 5)), (2, (4, 5)), ((0, 1), (2, 3, 4)), (-4, (2, 3, 4, 5))],
)
def test_axes_of_the_batch_and_beyond_are_refused(axes: Any, shape: tuple[int, ...]) -> None:
    layer = Standardize(axes)
    count = len(shape) - 1
    message = rf"Standardize: axes are .*; allowed: 1 to {count}, or -{count} to -1, as axis 0 is"
    with pytest.raises(ArgumentError, match=message):
        layer.forward(some(*shape))
    with pytest.raises(ArgumentError, match=message):
        Sequential(layer).output_shape(shape[1:])


@pytest.mark.parametrize("axes", ["all", 1.0, (), (1, None), True, np.array([1])])
def test_axes_are_ints(axes: Any) -> None:
    with pytest.raises(ArgumentError, match=r"Standardize: axes are .*; allowed: an int, several"):
        Standardize(axes)


def test_a_sample_of_one_number_has_no_variance() -> None:
    with pytest.raises(ShapeError, match=r"an example has shape \(\); allowed: at least one axis"):
        Standardize().forward(some(4))
