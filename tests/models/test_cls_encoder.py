"""ClsEncoder: closed form, composed form and the whole matrices of the notes, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import initializers
from handgrad.errors import HandgradError
from handgrad.models.cls_encoder import ClsEncoder
from handgrad.ops import softmax
from tests.layers.gradients import check_destinations, check_gradients
from tests.tolerances import assert_close

F64 = np.float64
n, m, d1, d2, k = 5, 4, 6, 3, 2


def model(**settings: Any) -> ClsEncoder:
    return ClsEncoder(m, d1, d2, k, rng=np.random.default_rng(15), dtype=F64, **settings)


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("standardize", ["example", None])
def test_gradients(standardize: str | None) -> None:
    check_gradients(model(standardize=standardize), some(3, n, m), training=True)


@pytest.mark.parametrize("standardize", ["example", None])
def test_gradients_go_where_they_are_sent(standardize: str | None) -> None:
    check_destinations(model(standardize=standardize), some(3, n, m), training=True)


def test_hg_check_finds_nothing_wrong() -> None:
    report = hg.check(model(), some(3, n, m))
    assert report.ok, str(report)


@pytest.mark.parametrize("standardize", ["example", None])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_closed_form_is_the_composed_one(standardize: str | None, batch: int) -> None:
    encoder = model(standardize=standardize)
    scores, cache = encoder.forward(some(batch, n, m))
    s, _ = softmax.forward(scores)
    y = np.eye(k)[np.arange(batch) % k]
    _, composed = encoder.backward(s - y, cache)
    closed = encoder.backward_closed_form(s - y, cache)
    assert list(closed) == list(composed)
    for name, gradient in closed.items():
        assert_close(gradient, composed[name], "float64", name)


def whole(encoder: ClsEncoder, x: np.ndarray) -> dict[str, np.ndarray]:
    """(1) to (7) of the forward for one sample (n, m), every row of every matrix computed."""
    w = encoder.parameters
    x_hat = (x - x.mean()) / np.sqrt(x.var() + encoder.eps)
    h_pre2 = np.concatenate([x_hat @ w["weight1"], w["cls_token"][None]])
    q, key, v, t = (h_pre2 @ w[f"weight_{name}"] for name in "qkvt")
    s, _ = softmax.forward(q @ key.T / np.sqrt(d2))
    h2 = s @ v + t
    return {"x_hat": x_hat, "h_pre2": h_pre2, "q": q, "k": key, "v": v, "s": s, "h2": h2}


def test_forward_is_that_of_the_notes() -> None:
    encoder, x = model(), some(2, n, m)
    scores, cache = encoder.forward(x)
    for i in range(2):
        of_all = whole(encoder, x[i])
        assert of_all["s"].shape == (n + 1, n + 1)
        assert_close(scores[i], of_all["h2"][n] @ encoder.weight2, "float64", "scores")
        for name, array in of_all.items():
            ours = getattr(cache, name)[i]
            expected = array[n:] if name in ("q", "s", "h2") else array
            assert_close(ours, expected, "float64", name)


def test_gradients_are_those_of_the_whole_matrices() -> None:
    """With a gradient of 0 in every row of h₂ but the class's."""
    encoder, x, dscores = model(), some(1, n, m), some(1, k)
    w, of_all = encoder.parameters, whole(encoder, x[0])
    dh2 = np.zeros((n + 1, d2))
    dh2[n] = dscores[0] @ w["weight2"].T
    s, q, key, v, h_pre2 = (of_all[name] for name in ("s", "q", "k", "v", "h_pre2"))
    ds = dh2 @ v.T
    dqk = s * (ds - (s * ds).sum(axis=1, keepdims=True)) / np.sqrt(d2)
    of_rows = {"q": dqk @ key, "k": dqk.T @ q, "v": s.T @ dh2, "t": dh2}
    dh_pre2 = sum(dh @ w[f"weight_{name}"].T for name, dh in of_rows.items())
    expected = {
        "weight1": of_all["x_hat"].T @ dh_pre2[:n],
        "cls_token": dh_pre2[n],
        **{f"weight_{name}": h_pre2.T @ dh for name, dh in of_rows.items()},
        "weight2": of_all["h2"][n:].T @ dscores,
    }
    _, cache = encoder.forward(x)
    _, gradients = encoder.backward(dscores, cache)
    for name, gradient in gradients.items():
        assert_close(gradient, expected[name], "float64", name)


def test_attention_weights_can_be_looked_at() -> None:
    encoder = model()
    _, cache = encoder.forward(some(3, n, m))
    ((name, weights),) = encoder.attention_maps(cache)
    assert (name, weights.shape) == ("attention", (3, 1, 1, n + 1))
    assert_close(weights.sum(axis=-1), np.ones((3, 1, 1)), "float64")


def test_samples_may_have_any_number_of_steps() -> None:
    encoder = model()
    for steps in (1, 7):
        y, cache = encoder.forward(some(2, steps, m))
        dx, _ = encoder.backward(y, cache)
        assert (y.shape, dx.shape) == ((2, k), (2, steps, m))
    y, cache = encoder.forward(np.zeros((0, n, m)))
    dx, gradients = encoder.backward(y, cache)
    assert (y.shape, dx.shape) == ((0, k), (0, n, m))
    assert not any(np.any(array) for array in gradients.values())


def test_shapes_are_those_of_the_notes() -> None:
    encoder = model()
    assert {name: array.shape for name, array in encoder.parameters.items()} == {
        "weight1": (m, d1),
        "cls_token": (d1,),
        "weight_q": (d1, d2),
        "weight_k": (d1, d2),
        "weight_v": (d1, d2),
        "weight_t": (d1, d2),
        "weight2": (d2, k),
    }
    assert encoder.output_shape((n, m)) == (k,)
    (row,) = encoder.rows((n, m))
    assert row.parameters == sum(array.size for array in encoder.parameters.values())
    tokens = 5 * n * m + 2 * 2 * n * m + 5 * (n + 1)  # x̂, before and after the softmax, and itself
    weights = 2 * 2 * m * d1 + 4 * 2 * d1 * d2 + 2 * d2 * k
    assert row.flops == tokens + weights + 2 * 2 * d1 + 2 * d2


def test_first_values_have_the_standard_deviation_of_their_inputs() -> None:
    encoder = ClsEncoder(16, 64, 36, 2, rng=np.random.default_rng(0))
    for name, inputs in (("weight1", 16), ("weight_q", 64), ("weight2", 36), ("cls_token", 64)):
        array = encoder.parameters[name]
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        # Without its tails, beyond two of its deviations, a normal's own is 0.88 of what it was.
        assert 0.7 < array.std() * np.sqrt(inputs) < 1.05, name
        assert np.abs(array).max() * np.sqrt(inputs) <= 2.0001, name
    chosen = model(initializer=initializers.zeros)
    assert not any(np.any(array) for array in chosen.parameters.values())


def test_what_does_not_fit_is_refused() -> None:
    for shape in ((2, n, m + 1), (2, m), (2, 0, m)):
        with pytest.raises(HandgradError, match=r"ClsEncoder: an example has .* allowed: \(n, 4\)"):
            model().forward(np.zeros(shape))
    with pytest.raises(HandgradError, match="d2 and classes are 4, 0, 3 and 2; allowed: from 1"):
        ClsEncoder(4, 0, 3, 2, rng=np.random.default_rng(0))
    with pytest.raises(HandgradError, match="standardize is 'batch'; allowed: 'example' or None"):
        model(standardize="batch")
