"""Every layer and loss can be traced: none computes by NumPy what depends on its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from tests.jax.cases import TRACED
from tests.layers.cases import CASES, Case

jax = pytest.importorskip("jax")
hgj = pytest.importorskip("handgrad.jax")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_step_of_every_layer_is_traced(case: Case) -> None:
    model = hg.Sequential(case.make(np.random.default_rng(3)))
    optimizer, x = hg.optimizers.SGD(), case.batch()
    state = hgj.init(model, optimizer)
    y = jax.eval_shape(hgj.forward(model), state, x)
    step = hgj.step(model, hg.losses.SquaredError(), optimizer)
    after, _ = jax.eval_shape(step, state, (x, np.zeros(y.shape)))
    shapes = jax.tree.map(lambda array: (array.shape, array.dtype), (state, after))
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", TRACED)
def test_a_step_of_models_with_other_settings_is_traced(name: str) -> None:
    model, loss, inputs, targets = TRACED[name]()
    optimizer = hg.optimizers.SGD()
    step = hgj.step(model, loss, optimizer)
    _, metrics = jax.eval_shape(step, hgj.init(model, optimizer), (inputs, targets))
    assert metrics.loss.shape == ()


LOSSES: dict[str, tuple[Any, tuple[np.ndarray, ...]]] = {
    "cross entropy": (
        hg.losses.CrossEntropy(weight=np.ones(4), label_smoothing=0.1),
        (np.array([1, 3, 2]),),
    ),
    "binary cross entropy": (hg.losses.BinaryCrossEntropy(), (np.zeros((3, 4)),)),
    "weighted": (
        hg.losses.Weighted(hg.losses.SquaredError(reduction="none")),
        (np.zeros((3, 4)), np.ones((3, 4))),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_to_every_loss_is_traced(name: str) -> None:
    loss, targets = LOSSES[name]
    model = hg.MLP([5, 4], rng=np.random.default_rng(3), dtype=np.float64)
    optimizer = hg.optimizers.SGD()
    step = hgj.step(model, loss, optimizer)
    _, metrics = jax.eval_shape(step, hgj.init(model, optimizer), (np.zeros((3, 5)), targets))
    assert metrics.loss.shape == ()
