from __future__ import annotations

import numpy as np
import pytest

from handgrad import data
from handgrad.data.series import draw_series, draw_vectors, series, vectors
from handgrad.errors import ArgumentError


def test_sizes_are_those_of_the_source():
    for name, shape in (("series", (100, 8)), ("vectors", (4, 16))):
        found = data.load(name)
        assert (found.name, found.input_shape) == (name, shape)
        assert (len(found.x_train), len(found.x_validation)) == (1024, 100)
        assert found.x_train.dtype == np.float32
        assert 0.35 < found.y_train.mean() < 0.65


def test_series_have_the_channels_and_labels_described():
    x, y = draw_series(2000, np.random.default_rng(1))
    channels = x.astype(np.float64).transpose(2, 0, 1)
    ar, seasonal, trend, interaction, noise, spike, level, volatility = channels
    np.testing.assert_allclose(interaction, ar * seasonal, atol=1e-5)
    score = ar[:, 40:].mean(axis=1) + 0.5 * interaction.std(axis=1) + 0.8 * spike.max(axis=1)
    certain = abs(score - 1) > 1e-5
    np.testing.assert_array_equal(y[certain], score[certain] > 1)

    # Standard errors of these estimates are below 0.01.
    residual = ar[:, 1:] - 0.9 * ar[:, :-1]
    assert residual.std() == pytest.approx(0.3, abs=0.01)
    assert ar[:, 0].std() == pytest.approx(ar[:, -1].std(), abs=0.05)
    assert abs(seasonal).max() <= 1.5
    np.testing.assert_allclose(np.diff(trend, 2, axis=1), 0, atol=1e-6)
    assert noise.std() == pytest.approx(1, abs=0.01)
    assert (np.count_nonzero(spike > 0.3, axis=1) <= 1).all()
    first = level < 0
    assert volatility[first].std() == pytest.approx(0.2, abs=0.01)
    assert volatility[~first].std() == pytest.approx(1, abs=0.01)


def test_vectors_are_labelled_by_the_majority():
    x, y = draw_vectors(500, np.random.default_rng(2))
    np.testing.assert_array_equal(y, (x > 1e-3).reshape(500, 64).mean(axis=1) > 0.5)
    assert x.std() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("make", [series, vectors])
def test_parts_differ_and_depend_on_the_seed_and_their_own_size(make):
    first, again, other = make(0), make(0, train=8), make(1)
    np.testing.assert_array_equal(first.x_test, again.x_test)
    np.testing.assert_array_equal(first.y_validation, again.y_validation)
    assert not np.array_equal(first.x_train[:100], first.x_validation)
    assert not np.array_equal(first.x_train, other.x_train)


def test_a_part_needs_an_example():
    with pytest.raises(ArgumentError, match="series: validation is 0; allowed: an integer from 1"):
        series(validation=0)
