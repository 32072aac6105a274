"""Kernels that a stranger found wrong without a word, and models that are refused now."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from benchmarks.limit_networks import (
    BIAS,
    F8,
    LENGTHS,
    SEQUENCES,
    VECTORS,
    WEIGHT,
    dense,
    recurrent,
    rng,
)
from handgrad import limits
from handgrad.errors import HandgradError
from tests.tolerances import assert_close

GIVEN = {"weight_variance": WEIGHT, "bias_variance": BIAS}


def residual_relu() -> hg.Sequential:
    return hg.Sequential(dense(6, 8), hg.Residual(hg.Activation("relu")), dense(8, 1))


def test_a_sum_with_its_own_activation_is_closed() -> None:
    """E (g + relu g)(g′ + relu g′) = k + k/2 + k/2 + V(k), as E g relu g′ = E g g′ E relu′."""
    k = WEIGHT * VECTORS @ VECTORS.T / 6 + BIAS
    size = np.sqrt(np.outer(np.diag(k), np.diag(k)))
    c = np.clip(k / size, -1.0, 1.0)
    relu = size * (np.sqrt(1.0 - c * c) + (np.pi - np.arccos(c)) * c) / (2.0 * np.pi)
    found = limits.kernel(residual_relu(), VECTORS, **GIVEN)
    assert np.abs(found - (WEIGHT * (2.0 * k + relu) + BIAS)).max() < 1e-7


def test_kernels_of_draws_are_one_covariance_in_inference() -> None:
    """The examples are met, and the deviation at them is as small as the noise."""
    y = np.random.default_rng(0).standard_normal(4)
    process = limits.GaussianProcess(recurrent("gru", 1)(4, 1), alpha=1e-8, samples=4096, **GIVEN)
    process.fit(SEQUENCES, y, lengths=LENGTHS)
    mean, deviation = process.predict(SEQUENCES, lengths=LENGTHS, return_std=True)
    np.testing.assert_allclose(mean, y, atol=1e-4)
    assert deviation.max() < 1e-3


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_a_mean_over_the_steps_is_that_of_a_classifier(lengths: np.ndarray | None) -> None:
    classifier = recurrent("rnn", 1, pooling="mean")(8, 1)
    chain = hg.Sequential(classifier.recurrent, hg.StepPooling("mean"), classifier.head)
    found, expected = (
        limits.kernel(each, SEQUENCES, lengths=lengths, **GIVEN) for each in (chain, classifier)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_large_examples_leave_small_ones_alone() -> None:
    x = np.array([[[1e5, -1e5]], [[1e-2, 2e-2]]])
    model = hg.Sequential(
        hg.Conv1d(1, 8, 1, rng=rng(), **F8), hg.MaxPool1d(2), hg.Flatten(), dense(8, 1)
    )
    given: dict[str, Any] = {"weight_variance": 1.0, "samples": 1 << 14}
    both, alone = (limits.kernel(model, each, **given) for each in (x, x[1:]))
    assert both[1, 1] == pytest.approx(alone[0, 0], rel=0.1)


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_padding_has_no_influence(cell: str) -> None:
    model = recurrent(cell, 1)(4, 1)
    padded = SEQUENCES.copy()
    for row, length in zip(padded, LENGTHS, strict=True):
        row[length:] = 1e8
    given: dict[str, Any] = {"lengths": LENGTHS, "samples": 1024, **GIVEN}
    one, other = (limits.kernel(model, each, **given) for each in (SEQUENCES, padded))
    assert np.array_equal(one, other)


def test_an_odd_number_of_draws_is_made_even() -> None:
    model = recurrent("gru", 1)(4, 1)
    odd, even = (limits.kernel(model, SEQUENCES, samples=n, **GIVEN) for n in (1001, 1002))
    assert np.array_equal(odd, even)


def test_learned_positions_that_stand_twice_are_the_same() -> None:
    """x + 2 P has four times the variance of P."""
    positions = hg.LearnedPositions(4, 8, rng=rng(), initializer=hg.initializers.normal, **F8)
    once = hg.Sequential(dense(6, 8), positions, hg.LastStep())
    twice = hg.Sequential(dense(6, 8), positions, positions, hg.LastStep())
    none = hg.Sequential(dense(6, 8), hg.LastStep())
    k = [limits.kernel(model, SEQUENCES, weight_variance=1.0) for model in (none, once, twice)]
    assert_close(k[2] - k[0], 4.0 * (k[1] - k[0]), "float64")


def test_what_a_recurrent_layer_gives_after_the_end_is_zero() -> None:
    found = limits.kernel(hg.RNN(6, 4, rng=rng(), **F8), SEQUENCES, lengths=LENGTHS, **GIVEN)
    assert not found[1, LENGTHS[1] :].any()
    assert found[1, : LENGTHS[1], 1].any()


@pytest.mark.parametrize("variance", [1e-12, 1e-6, 1.0])
def test_batches_of_small_variance_feel_epsilon(variance: float) -> None:
    """A batch of two is ±w/√(w² + ε), w half the difference: E w²/(w² + ε), by quadrature."""
    x = np.array([[1.0], [-1.0]])
    model = hg.Sequential(dense(1, 4), hg.BatchNorm(4, eps=1e-5, **F8))
    found = limits.kernel(model, x, weight_variance=variance)
    z = np.linspace(-12.0, 12.0, 200_001)
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) * (z[1] - z[0])
    expected = np.sum(density * variance * z * z / (variance * z * z + 1e-5))
    assert found[0, 0] == pytest.approx(expected, rel=1e-5)
    assert found[0, 1] == pytest.approx(-expected, rel=1e-5)


def test_two_batches_of_one_direction() -> None:
    """Rank one: y = sign of the weight times normalised x, so that the kernel is exact."""
    x = np.random.default_rng(5).standard_normal((2, 5, 1))
    model = hg.Sequential(dense(1, 4), hg.BatchNorm(4, eps=0.0, **F8))
    found = limits.kernel(model, x[0], x[1], weight_variance=1.0)
    n = [(each[:, 0] - each.mean()) / each.std() for each in x]
    assert np.abs(found - np.outer(*n)).max() < 1e-7


@pytest.mark.parametrize("activation", ["gelu", "silu"])
def test_a_slope_that_jumps_has_no_critical_variance(activation: str) -> None:
    with pytest.raises(HandgradError, match="jumps from"):
        limits.critical_weight_variance(activation)


@pytest.mark.parametrize(("activation", "right"), [("erf", np.pi / 4), ("tanh", 1.0), ("sin", 1.0)])
def test_without_biases_the_critical_variance_is_that_of_the_slope_at_0(
    activation: str, right: float
) -> None:
    assert limits.critical_weight_variance(activation) == pytest.approx(right, rel=1e-6)


def test_slow_fixed_points_are_reached() -> None:
    assert limits.fixed_point("relu", 1.999, 0.1).variance == pytest.approx(200.0, rel=1e-9)
    assert limits.fixed_point("relu", 2.0, 0.1).variance == np.inf
    assert limits.fixed_point("tanh", 0.999).variance == 0.0


def test_convergence_keeps_what_layers_fix() -> None:
    """The bias of forget gates, and the row of a padding token."""

    def make(width: int) -> hg.Sequential:
        lstm = hg.LSTM(6, width, rng=rng(), forget_bias=3.0, **F8)
        return hg.Sequential(lstm, hg.LastStep(), dense(width, width))

    found = limits.convergence(
        make, SEQUENCES, widths=(32, 128, 512), networks=10, samples=1 << 14, **GIVEN
    )
    assert found.slope < -0.6


def test_inference_keeps_what_it_was_given() -> None:
    x, y = VECTORS.copy(), np.arange(5.0)
    process = limits.GaussianProcess(residual_relu(), **GIVEN).fit(x, y)
    before = process.predict(VECTORS[:2])
    x[:] = 0.0
    process.set_params(weight_variance=8.0)
    assert np.array_equal(process.predict(VECTORS[:2]), before)


def channels_then(layer: Any) -> hg.Sequential:
    first = hg.Conv1d(4, 8, 1, rng=rng(), **F8)
    return hg.Sequential(first, layer, hg.Flatten(), hg.Dense(48, 1, rng=rng(), **F8))


REFUSED: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "a norm along what is no width": (
        lambda: channels_then(hg.LayerNorm(6, **F8)),
        SEQUENCES,
        {},
        "features on the last axis",
    ),
    "pooling along the width": (
        lambda: hg.Sequential(
            hg.RNN(6, 8, rng=rng(), **F8), hg.AvgPool1d("global"), hg.Flatten(), dense(4, 1)
        ),
        SEQUENCES,
        {},
        "features on the first axis",
    ),
    "one matrix in two ways": (
        lambda: _in_two_ways(),
        SEQUENCES,
        {},
        "put together in different ways",
    ),
    "variances of the other kind": (
        lambda: dense(6, 1),
        VECTORS,
        {"weight_variance": {"bias": 1.0}},
        "allowed: weight",
    ),
    "a variance that is no number": (
        lambda: dense(6, 1),
        VECTORS,
        {"weight_variance": "2"},
        "weight_variance is '2'",
    ),
    "a variance that is true": (
        lambda: dense(6, 1),
        VECTORS,
        {"bias_variance": True},
        "bias_variance is True",
    ),
    "lengths of vectors": (
        lambda: dense(6, 1),
        VECTORS,
        {"lengths": np.ones(5, np.int64)},
        "would not see them",
    ),
    "tokens out of range": (
        lambda: hg.Sequential(hg.Embedding(3, 4, rng=rng()), hg.LastStep()),
        np.array([[0, 3]]),
        {},
        "tokens go from 0 to 3; allowed: 0 to 2",
    ),
    "fewer channels": (
        lambda: channels_then(hg.Dropout(0.0, rng=rng())),
        SEQUENCES,
        {"x2": SEQUENCES[:, :3]},
        "Conv1d",
    ),
    "too large": (lambda: dense(6, 1), VECTORS * 1e200, {}, "beyond the largest number"),
    "complex": (lambda: dense(6, 1), VECTORS * 1j, {}, "type complex128"),
    "the largest of steps": (
        lambda: hg.Sequential(hg.RNN(6, 8, rng=rng(), **F8), hg.StepPooling("max"), dense(8, 1)),
        SEQUENCES,
        {},
        "pooling is 'max'; allowed: 'mean'",
    ),
    "images of integers": (
        lambda: hg.Sequential(hg.Flatten(), dense(4, 1)),
        np.zeros((2, 2, 2), np.uint8),
        {},
        "allowed: floats",
    ),
    "no layer": (lambda: 3, VECTORS, {}, "the model is a int; allowed: a layer"),
    "a number": (lambda: dense(6, 1), np.float64(1.0), {}, "x has shape ()"),
    "draws that are no number": (
        lambda: recurrent("gru", 1)(4, 1),
        SEQUENCES,
        {"samples": "a"},
        "samples is 'a'",
    ),
    "a seed below 0": (lambda: recurrent("gru", 1)(4, 1), SEQUENCES, {"seed": -1}, "seed is -1"),
}


def _in_two_ways() -> hg.Sequential:
    shared = dense(16, 16)
    return hg.Sequential(
        hg.RNN(6, 8, rng=rng(), nonlinearity="relu", bidirectional=True, **F8),
        hg.LastStep(bidirectional=True),
        shared,
        shared,
    )


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_would_be_wrong_is_refused(case: Any) -> None:
    make, x, settings, words = case
    with pytest.raises(HandgradError) as error:
        limits.kernel(make(), x, **settings)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_model_that_does_nothing_has_the_kernel_of_its_inputs() -> None:
    found = limits.kernel(hg.Sequential(), VECTORS)
    assert_close(found, VECTORS @ VECTORS.T / 6, "float64")
