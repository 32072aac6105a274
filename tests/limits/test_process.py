"""Exact inference with a wide network's kernel."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from benchmarks.limit_networks import (
    BIAS,
    LENGTHS,
    SEQUENCES,
    WEIGHT,
    dense,
    feed_forward,
    recurrent,
    redrawn,
    rng,
    variances,
)
from handgrad import limits
from handgrad.data import digits
from handgrad.errors import HandgradError
from tests.tolerances import assert_close

GIVEN = {"weight_variance": WEIGHT, "bias_variance": BIAS}
RNG = np.random.default_rng(2)
X, X2 = RNG.standard_normal((12, 6)), RNG.standard_normal((5, 6))
Y = RNG.standard_normal((12, 2))


def test_the_posterior_is_that_of_the_formulas() -> None:
    """Mean K*(K + α)⁻¹y and variance k** − K*(K + α)⁻¹K*ᵀ, by the inverse itself."""
    model = feed_forward("erf", 2)(4, 1)
    found = limits.GaussianProcess(model, alpha=0.1, **GIVEN).fit(X, Y)
    mean, deviation = found.predict(X2, return_std=True)
    whole = limits.kernel(model, np.concatenate([X, X2]), **GIVEN)
    k, cross, prior = whole[:12, :12], whole[12:, :12], whole[12:, 12:]
    inverse = np.linalg.inv(k + 0.1 * np.eye(12))
    assert_close(mean, cross @ inverse @ Y, "finite differences")
    variance = np.diag(prior - cross @ inverse @ cross.T)
    assert_close(deviation, np.sqrt(variance), "finite differences")
    evidence = sum(
        -0.5 * y @ inverse @ y
        - 0.5 * np.linalg.slogdet(k + 0.1 * np.eye(12))[1]
        - 6.0 * np.log(2.0 * np.pi)
        for y in Y.T
    )
    assert found.log_marginal_likelihood_ == pytest.approx(evidence, rel=1e-9)
    assert found.jitter_ == 0.0


def test_examples_without_noise_are_met() -> None:
    found = limits.GaussianProcess(feed_forward("relu", 1)(4, 1), **GIVEN).fit(X, Y[:, 0])
    mean, deviation = found.predict(X, return_std=True)
    np.testing.assert_allclose(mean, Y[:, 0], atol=1e-6)
    assert deviation.max() < 1e-3
    assert found.score(X, Y[:, 0]) > 1.0 - 1e-9


def test_sequences_of_different_lengths() -> None:
    model = recurrent("rnn", 1)(4, 1)
    found = limits.GaussianProcess(model, **GIVEN).fit(SEQUENCES, Y[:4], lengths=LENGTHS)
    mean = found.predict(SEQUENCES[:2, :3], lengths=np.array([2, 3]))
    assert mean.shape == (2, 2)
    np.testing.assert_allclose(mean[1], Y[1], atol=1e-6)


def test_settings_as_scikit_learn_takes_them() -> None:
    found = limits.GaussianProcess(dense(6, 1), alpha=0.5)
    assert found.set_params(alpha=0.25, kind="ntk") is found
    assert found.get_params()["alpha"] == 0.25
    twin = type(found)(**found.get_params())
    assert twin.kind == "ntk"
    with pytest.raises(HandgradError, match="'depth' is no setting"):
        found.set_params(depth=2)


REFUSED = {
    "before fit": (lambda process: process.predict(X2), "predict before fit"),
    "y of another length": (lambda process: process.fit(X, Y[:3]), r"y has shape \(3, 2\)"),
    "y with NaN": (lambda process: process.fit(X, Y * np.nan), "y has NaN"),
    "deviations of the tangent kernel": (
        lambda process: process.set_params(kind="ntk").fit(X, Y).predict(X2, return_std=True),
        "return_std with kind 'ntk'",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_one_sentence(case) -> None:
    do, words = case
    with pytest.raises(HandgradError, match=words):
        do(limits.GaussianProcess(feed_forward("relu", 1)(4, 1), **GIVEN))


def test_a_singular_kernel_is_refused() -> None:
    x = np.zeros((3, 6))
    with pytest.raises(HandgradError, match="not positive definite"):
        limits.GaussianProcess(dense(6, 1), alpha=0.0, weight_variance=1.0).fit(x, np.ones(3))


@pytest.mark.slow
def test_digits_are_told_apart_by_a_convolution() -> None:
    data = digits.load()
    train, test = np.arange(300), np.arange(200)
    layers = [hg.Conv2d(c, 4, 3, padding=1, rng=rng(), activation="relu") for c in (1, 4)]
    model = hg.Sequential(*layers, hg.Flatten(), hg.Dense(256, 10, rng=rng()))
    targets = np.eye(10)[data.y_train[train]] - 0.1
    process = limits.GaussianProcess(model, alpha=1e-3).fit(data.x_train[train], targets)
    mean = process.predict(data.x_test[test])
    assert np.mean(mean.argmax(axis=1) == data.y_test[test]) > 0.88


@pytest.mark.slow
def test_gradient_descent_on_a_wide_network_follows_the_tangent_kernel() -> None:
    """Digits 3 and 8: after n steps of full-batch descent on ½ Σ (f − y)², with f₀ taken away,

        f(x) = K(x, X) K⁻¹ (1 − (1 − η K)ⁿ) y.

    Each weight learns at η times its own variance, which is descent on standard normal parameters.
    Source: Lee et al., Wide neural networks of any depth evolve as linear models under gradient
    descent (2019), section 2.
    """
    data = digits.load()
    chosen = np.flatnonzero(np.isin(data.y_train, (3, 8)))[:60]
    x = data.x_train[chosen].reshape(60, 64).astype(np.float64)
    y = np.where(data.y_train[chosen] == 3, 1.0, -1.0)
    x, x2, y = x[:40], x[40:], y[:40]
    width, eta, steps = 4096, 0.02, 60

    def make(n: int) -> hg.Sequential:
        return hg.Sequential(dense(64, n, "relu"), dense(n, 1))

    model = redrawn(make(width), 0)
    start, _ = model.forward(x)
    start2, _ = model.forward(x2)
    for _ in range(steps):
        f, cache = model.forward(x)
        dy = (f - start)[:, 0] - y
        _, gradients = model.backward(dy[:, None], cache)
        for name, array, variance in variances(model):
            array -= eta * variance * gradients[name]
    trained = (model.forward(x2)[0] - start2)[:, 0]
    both = limits.kernel(make(8), np.concatenate([x, x2]), kind="ntk", **GIVEN)
    k, cross = both[:40, :40], both[40:, :40]
    values, vectors = np.linalg.eigh(k)
    decay = 1.0 - (1.0 - eta * values) ** steps
    predicted = cross @ (vectors * (decay / values)) @ vectors.T @ y
    error = np.sqrt(np.mean((trained - predicted) ** 2) / np.mean(predicted**2))
    assert error < 0.05, error
