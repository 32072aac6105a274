"""TwoLayerNet: both backward forms, Careddu's equations with their brackets, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import initializers
from handgrad.errors import HandgradError
from handgrad.models.two_layer_net import TwoLayerNet
from handgrad.ops import softmax
from tests.layers.gradients import check_destinations, check_gradients
from tests.tolerances import assert_close

F64 = np.float64
n, m, d, k = 3, 5, 4, 2


def model(**settings: Any) -> TwoLayerNet:
    net = TwoLayerNet(n, m, d, k, rng=np.random.default_rng(13), dtype=F64, **settings)
    rng = np.random.default_rng(14)
    for name in ("bias1", "bias2"):
        net.parameters[name][...] = rng.standard_normal(net.parameters[name].shape)
    return net


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("standardize", ["example", None])
def test_gradients(standardize: str | None) -> None:
    check_gradients(model(standardize=standardize), some(6, n, m), training=True)


@pytest.mark.parametrize("standardize", ["example", None])
def test_gradients_go_where_they_are_sent(standardize: str | None) -> None:
    check_destinations(model(standardize=standardize), some(6, n, m), training=True)


def test_hg_check_finds_nothing_wrong() -> None:
    report = hg.check(model(), some(6, n, m))
    assert report.ok, str(report)


@pytest.mark.parametrize("y", [[1.0, 0.0], [0.3, 0.7]], ids=["one hot", "probabilities"])
@pytest.mark.parametrize("standardize", ["example", None])
def test_the_chain_of_jacobians_is_the_vectorised_form(
    y: list[float], standardize: str | None
) -> None:
    net, target = model(standardize=standardize), np.array(y)
    scores, cache = net.forward(some(1, n, m))
    s, _ = softmax.forward(scores)
    _, vectorised = net.backward(s - target, cache)
    chain = net.backward_jacobian_chain(target, cache)
    assert list(chain) == list(vectorised)
    for name, gradient in chain.items():
        assert_close(gradient, vectorised[name], "float64", name)

    loss = hg.losses.CrossEntropy()
    _, loss_cache = loss.forward(scores, target[None])
    _, gradients = net.backward(loss.backward(loss_cache), cache)
    for name, gradient in chain.items():
        assert_close(gradient, gradients[name], "float64", name)


def test_forward_and_backward_are_the_equations_of_section_2() -> None:
    """For one sample: (1) to (5), then (3), (5), (6) and (7) with their brackets."""
    net = model()
    w1, b1, w2, b2 = net.parameters.values()
    x, delta = some(1, n, m), some(1, k)
    x_hat = (x[0] - x.mean()) / np.sqrt(x.var() + 1e-5)
    a1 = w1 @ x_hat.T + b1
    pre_a2 = np.maximum(a1, 0).reshape(d * n)
    scores, cache = net.forward(x)
    assert_close(scores[0], w2 @ pre_a2 + b2, "float64")
    assert_close(cache.a1[0], a1, "float64")

    _, gradients = net.backward(delta, cache)
    assert_close(gradients["weight2"], delta.T @ pre_a2[None], "float64")
    assert_close(gradients["bias2"], delta[0], "float64")
    da1 = (delta @ w2).reshape(d, n) * (a1 > 0)
    assert_close(gradients["bias1"], da1, "float64")
    assert_close(gradients["weight1"], da1 @ x_hat, "float64")


def test_shapes_are_those_of_the_notes() -> None:
    net = model()
    assert {name: array.shape for name, array in net.parameters.items()} == {
        "weight1": (d, m),
        "bias1": (d, n),
        "weight2": (k, d * n),
        "bias2": (k,),
    }
    assert net.output_shape((n, m)) == (k,)
    (row,) = net.rows((n, m))
    assert row.parameters == d * m + d * n + k * d * n + k
    products = 2 * (d * m * n + k * d * n)
    assert row.flops == products + 5 * n * m + 2 * d * n + k
    assert model(standardize=None).flops((n, m)) == row.flops - 5 * n * m


def test_a_batch_is_the_sum_of_its_samples() -> None:
    net = model()
    x, dy = some(6, n, m), some(6, k)
    y, cache = net.forward(x)
    dx, gradients = net.backward(dy, cache)
    totals = {name: np.zeros_like(array) for name, array in gradients.items()}
    for i in range(6):
        own_y, own_cache = net.forward(x[i : i + 1])
        own_dx, own = net.backward(dy[i : i + 1], own_cache)
        assert_close(own_y[0], y[i], "float64")
        assert_close(own_dx[0], dx[i], "float64")
        totals = {name: totals[name] + own[name] for name in totals}
    for name, total in totals.items():
        assert_close(gradients[name], total, "float64", name)


def test_an_empty_batch() -> None:
    net = model()
    y, cache = net.forward(np.zeros((0, n, m)))
    dx, gradients = net.backward(y, cache)
    assert (y.shape, dx.shape) == ((0, k), (0, n, m))
    assert not any(np.any(array) for array in gradients.values())


def test_first_values_can_be_chosen() -> None:
    net = TwoLayerNet(n, m, d, k, rng=np.random.default_rng(0), initializer=initializers.zeros)
    assert not any(np.any(array) for array in net.parameters.values())
    assert {array.dtype for array in net.parameters.values()} == {np.dtype(np.float32)}


def test_what_does_not_fit_is_refused() -> None:
    net = model()
    with pytest.raises(HandgradError, match=r"example has shape \(5, 3\); allowed: \(3, 5\)"):
        net.forward(some(2, m, n))
    with pytest.raises(HandgradError, match="hidden and classes are 3, 5, 0 and 2; allowed: from"):
        TwoLayerNet(n, m, 0, k, rng=np.random.default_rng(0))
    with pytest.raises(HandgradError, match="standardize is 'batch'; allowed: 'example' or None"):
        model(standardize="batch")
    _, cache = net.forward(some(2, n, m))
    with pytest.raises(HandgradError, match=r"2 samples and .* \(2,\); allowed: one sample and"):
        net.backward_jacobian_chain(np.array([1.0, 0.0]), cache)
