"""The mean and the largest of the steps of a sequence."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, ShapeError
from handgrad.models import SequenceClassifier

RNG = np.random.default_rng(3)
LENGTHS = np.array([5, 2, 0, 1])


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_steps_behind_the_end_have_no_influence(pooling: str) -> None:
    x, dy = RNG.standard_normal((4, 5, 3)), RNG.standard_normal((4, 3))
    behind = np.arange(5)[None, :] >= LENGTHS[:, None]
    filled = x.copy()
    filled[behind] = np.nan
    layer = hg.StepPooling(pooling)
    y, cache = layer.forward(filled, LENGTHS)
    dx, _ = layer.backward(dy, cache)
    for i, length in enumerate(LENGTHS):
        if not length:
            np.testing.assert_array_equal(y[i], 0.0)
            continue
        alone, own = layer.forward(x[i : i + 1, :length])
        np.testing.assert_allclose(y[i : i + 1], alone, rtol=1e-15)
        np.testing.assert_allclose(dx[i : i + 1, :length], layer.backward(dy[i : i + 1], own)[0])
    np.testing.assert_array_equal(dx[behind], 0.0)


def test_values_are_numpys() -> None:
    x = RNG.standard_normal((4, 5, 3))
    x[0, 1, 2] = -np.inf
    np.testing.assert_allclose(hg.StepPooling("mean")(x), x.mean(1))
    np.testing.assert_array_equal(hg.StepPooling("max")(x), x.max(1))


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_a_classifier_pools_in_the_same_way(pooling: str, lengths: np.ndarray | None) -> None:
    model = SequenceClassifier(3, 4, 2, rng=RNG, cell="gru", pooling=pooling, dtype=np.float64)
    x, dy = RNG.standard_normal((4, 5, 3)), RNG.standard_normal((4, 2))
    (h, _), through = model.recurrent.forward(x, lengths=lengths)
    layer = hg.StepPooling(pooling)
    r, cache = layer.forward(h, lengths)
    scores, head = model.head.forward(r)
    y, whole = model.forward(x, lengths)
    np.testing.assert_allclose(scores, y, rtol=1e-13)
    dh, _ = layer.backward(model.head.backward(dy, head)[0], cache)
    (dx, _), _ = model.recurrent.backward((dh, None), through)
    np.testing.assert_allclose(dx, model.backward(dy, whole)[0], rtol=1e-12, atol=1e-15)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match=r"StepPooling: pooling is 'sum'; allowed: mean, max"):
        hg.StepPooling("sum")
    layer, x = hg.StepPooling("mean"), np.zeros((2, 3, 4))
    with pytest.raises(ShapeError, match=r"StepPooling: an example has shape \(0, 4\); allowed"):
        layer.forward(x[:, :0])
    with pytest.raises(ShapeError, match=r"StepPooling: lengths has shape \(3,\); allowed: \(2,\)"):
        layer.forward(x, [1, 2, 3])
    with pytest.raises(ArgumentError, match=r"StepPooling: lengths go from 1 to 4; allowed"):
        layer.forward(x, [1, 4])
