"""Batch normalisation of the input: no draws are in it, so its kernel is that of what it makes."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from benchmarks.limit_networks import BIAS, F8, LENGTHS, SEQUENCES, WEIGHT, dense, rng
from handgrad import limits
from handgrad.errors import HandgradError
from tests.tolerances import assert_close

GIVEN = {"weight_variance": WEIGHT, "bias_variance": BIAS}
DRAWN = np.random.default_rng(3)
VECTORS, OTHERS = 1.0 + 3.0 * DRAWN.standard_normal((2, 6, 6))
IMAGES = 1.0 + 3.0 * DRAWN.standard_normal((4, 2, 3, 3))


def behind(norm: hg.BatchNorm | None, *layers: hg.layers.Layer) -> hg.Sequential:
    return hg.Sequential(*([] if norm is None else [norm]), *layers)


def normalised(x: np.ndarray, activation: str = "identity") -> np.ndarray:
    axes = (0, *range(2, x.ndim))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    y = (x - mean) / np.sqrt(variance + 1e-5)
    return np.maximum(y, 0.0) if activation == "relu" else y


@pytest.mark.parametrize("activation", ["identity", "relu"])
@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_the_kernel_is_that_of_the_normalised_batches(kind: str, activation: str) -> None:
    layers = dense(6, 8, "relu"), dense(8, 1)
    model = behind(hg.BatchNorm(6, activation=activation, **F8), *layers)
    found = limits.kernel(model, VECTORS, OTHERS[:4], kind, **GIVEN)
    sides = normalised(VECTORS, activation), normalised(OTHERS[:4], activation)
    assert_close(found, limits.kernel(behind(None, *layers), *sides, kind, **GIVEN), "float64")


def test_channels_of_images_have_one_mean_each() -> None:
    conv = hg.Conv2d(2, 4, 3, padding=1, rng=rng(), activation="relu", **F8)
    layers = conv, hg.Flatten(), dense(36, 1)
    found = limits.kernel(behind(hg.BatchNorm(2, **F8), *layers), IMAGES, **GIVEN)
    expected = limits.kernel(behind(None, *layers), normalised(IMAGES), **GIVEN)
    assert_close(found, expected, "float64")


def test_examples_beyond_a_block_are_one_batch() -> None:
    x = np.random.default_rng(4).standard_normal((150, 6)) ** 2
    layers = dense(6, 8, "erf"), dense(8, 1)
    found = limits.kernel(behind(hg.BatchNorm(6, **F8), *layers), x, **GIVEN)
    assert_close(found, limits.kernel(behind(None, *layers), normalised(x), **GIVEN), "float64")


def test_the_examples_of_the_caller_stay_as_they_are() -> None:
    x = VECTORS.copy()
    limits.kernel(behind(hg.BatchNorm(6, **F8), dense(6, 1)), x, **GIVEN)
    assert np.array_equal(x, VECTORS)


def test_networks_come_to_it() -> None:
    def make(width: int) -> hg.Sequential:
        return behind(hg.BatchNorm(6, **F8), dense(6, width, "relu"), dense(width, width))

    found = limits.convergence(make, VECTORS, widths=(64, 256, 1024), networks=20, **GIVEN)
    assert found.slope == pytest.approx(-1.0, abs=0.2)


def test_the_program_names_the_normalised_input() -> None:
    variables = limits.program(behind(hg.BatchNorm(6, **F8), dense(6, 1)), VECTORS).variables
    assert variables[0].name == "x̂"


def test_padding_of_sequences_would_count_and_is_refused() -> None:
    model = behind(hg.BatchNorm(4, **F8), hg.RNN(6, 4, rng=rng(), **F8))
    with pytest.raises(HandgradError, match="whose padding would count; allowed: None"):
        limits.kernel(model, SEQUENCES, lengths=LENGTHS, **GIVEN)


def test_tokens_are_refused() -> None:
    model = behind(hg.BatchNorm(6, **F8), dense(6, 1))
    with pytest.raises(HandgradError, match="which are tokens"):
        limits.kernel(model, np.zeros((3, 6), np.int64), **GIVEN)
