"""A step of JAX is the step of this engine: losses, gradients, buffers and updates."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, ShapeError
from handgrad.optimizers import BY_NAME, clip_by_global_norm
from handgrad.training.metrics import layer_norms
from tests.jax.cases import CASES, mlp
from tests.tolerances import assert_close

jax = pytest.importorskip("jax")
jnp = jax.numpy
hgj = pytest.importorskip("handgrad.jax")


def as_float32(model: Any) -> Any:
    """The model in float32, with its structure as it is."""
    twin = copy.deepcopy(model)
    for _, layer in hg.layers.walk(twin):
        for name in (*layer.parameter_names, *layer.buffer_names):
            array = getattr(layer, name)
            setattr(layer, name, None if array is None else array.astype(np.float32))
    return twin


def our_step(model: Any, loss: Any, inputs: Any, targets: Any) -> tuple[float, dict[str, Any]]:
    outputs, cache = model.forward(*inputs, training=True)
    value, loss_cache = loss.forward(outputs, targets)
    _, gradients = model.backward(loss.backward(loss_cache), cache, input_gradient=False)
    return float(value), gradients


def marked(case: str) -> Any:
    """The case, slow where compiling it takes more than two seconds."""
    long = ("cnn", "seq2seq", "transformer")
    return pytest.param(case, marks=pytest.mark.slow) if case in long else case


@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_gradients_and_buffers_are_those_of_this_engine(case: str) -> None:
    """The difference that a step of SGD with a rate of 1 makes is the gradient."""
    model, loss, inputs, targets = CASES[case]()
    optimizer = hg.optimizers.SGD(1.0)
    step = jax.jit(hgj.step(model, loss, optimizer))
    before = hgj.init(model, optimizer)
    value, expected = our_step(ours := copy.deepcopy(model), loss, inputs, targets)
    state, metrics = step(before, (inputs, targets))
    assert_close(metrics.loss, value, "other arrays", "loss")
    assert set(state.parameters) == set(model.parameters)
    for name, gradient in expected.items():
        found = before.parameters[name] - state.parameters[name]
        assert_close(found, gradient, "other arrays", name)
    for name, buffer in ours.buffers.items():
        assert_close(state.buffers[name], buffer, "other arrays", name)
    for layer, norm in layer_norms(expected).items():
        assert_close(metrics.gradient_norms[layer], norm, "other arrays", f"norm of {layer}")


def test_float32() -> None:
    model, loss, inputs, targets = mlp()
    model = as_float32(model)
    optimizer = hg.optimizers.SGD(1.0)
    adam = hg.optimizers.Adam()
    before = hgj.init(model, optimizer)
    state, _ = jax.jit(hgj.step(model, loss, optimizer))(before, (inputs, targets))
    of_adam, _ = jax.jit(hgj.step(model, loss, adam))(hgj.init(model, adam), (inputs, targets))
    assert {array.dtype for array in of_adam.parameters.values()} == {np.dtype(np.float32)}
    inputs = tuple(x.astype(np.float32) if x.dtype.kind == "f" else x for x in inputs)
    _, expected = our_step(model, loss, inputs, targets)
    for name, gradient in expected.items():
        found = before.parameters[name] - state.parameters[name]
        assert_close(found, gradient, "float32 functions", name)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_optimizer_and_one_compilation(name: str) -> None:
    model, loss, inputs, targets = mlp()
    ours, optimizer, own = copy.deepcopy(model), BY_NAME[name](lr=0.01), BY_NAME[name](lr=0.01)
    state = hgj.init(model, optimizer)
    step = jax.jit(hgj.step(model, loss, optimizer))
    for rate in (0.01, 0.02, 0.03):
        state = state._replace(learning_rate=jnp.asarray(rate))
        state, _ = step(state, (inputs, targets))
        _, gradients = our_step(ours, loss, inputs, targets)
        own.step(ours.parameters, gradients, rate)
    assert step._cache_size() == 1
    hgj.load(model, state, optimizer)
    for key, array in ours.parameters.items():
        assert_close(model.parameters[key], array, "other arrays", key)
    assert optimizer.state.keys() == own.state.keys()
    for key, array in own.state.items():
        assert_close(optimizer.state[key], array, "other arrays", key)


def test_a_state_goes_on_from_where_model_and_optimizer_are() -> None:
    model, loss, inputs, targets = mlp()
    ours, optimizer = copy.deepcopy(model), hg.optimizers.Adam(0.01)
    own = hg.optimizers.Adam(0.01)
    step = jax.jit(hgj.step(model, loss, optimizer))
    for _ in range(3):
        state, _ = step(hgj.init(model, optimizer), (inputs, targets))
        hgj.load(model, state, optimizer)
        own.step(ours.parameters, our_step(ours, loss, inputs, targets)[1])
    assert optimizer.steps == 3
    for key, array in ours.parameters.items():
        assert_close(model.parameters[key], array, "other arrays", key)


def test_clipping() -> None:
    model, loss, inputs, targets = mlp()
    optimizer = hg.optimizers.SGD(1.0)
    _, expected = our_step(model, loss, inputs, targets)
    norm = clip_by_global_norm(expected, 0.1)
    assert norm > 0.1
    before = hgj.init(model, optimizer)
    state, _ = jax.jit(hgj.step(model, loss, optimizer, clip_norm=0.1))(before, (inputs, targets))
    for name, gradient in expected.items():
        found = before.parameters[name] - state.parameters[name]
        assert_close(found, gradient, "other arrays", name)


def test_a_loss_that_is_not_finite_changes_nothing() -> None:
    model, loss, inputs, targets = mlp()
    optimizer = hg.optimizers.Adam()
    before = hgj.init(model, optimizer)
    step = jax.jit(hgj.step(model, loss, optimizer))
    after, metrics = step(before, (inputs[0] * np.nan, targets))
    assert np.isnan(metrics.loss)
    jax.tree.map(np.testing.assert_array_equal, after, before)


def test_dropout_draws_from_the_keys_of_the_state() -> None:
    rng = np.random.default_rng(1)
    shared = np.random.default_rng(2)
    drops = [hg.Dropout(0.25, rng=shared), hg.Dropout(0.5, rng=shared)]
    model = hg.Sequential(drops[0], drops[1], hg.Dense(1000, 1, rng=rng, dtype=np.float64))
    optimizer, loss = hg.optimizers.SGD(1.0), hg.losses.SquaredError()
    step = jax.jit(hgj.step(model, loss, optimizer, measure=lambda y, target: y))
    x, target, stood = np.ones((8, 1000)), np.zeros((8, 1)), shared.bit_generator.state
    first = hgj.init(model, optimizer)
    assert shared.bit_generator.state == stood
    second, metrics = step(first, (x, target))
    _, again = step(first, (x, target))
    np.testing.assert_array_equal(metrics.measured, again.measured)
    third, _ = step(second, (x, target))
    assert len({tuple(state.keys["0.rng"].tolist()) for state in (first, second, third)}) == 3
    # The gradient of the weight is dyᵀ x̂, with x̂ what both masks left of ones, scaled up.
    row = (first.parameters["2.weight"] - second.parameters["2.weight"])[0]
    left = np.asarray(row / metrics.measured.mean()) != 0
    assert left.mean() > 0.9  # 1 − (1 − 3/8)⁸, the share of columns left in some row


def test_dropout_leaves_the_share_it_should() -> None:
    generator = hgj.binding.KeyGenerator(jax.random.key_data(jax.random.key(0)))
    y, _ = hg.ops.dropout.forward(jnp.ones((100, 100)), 0.3, generator)
    assert abs(float((y == 0).mean()) - 0.3) < 0.02
    assert_close(y[y != 0], np.full(int((y != 0).sum()), 1 / 0.7), "other arrays")


def test_the_precision_of_products_is_asked_for() -> None:
    model, loss, inputs, targets = mlp()
    optimizer = hg.optimizers.SGD()
    state = hgj.init(model, optimizer)

    def code() -> str:
        pure = hgj.step(model, loss, optimizer)
        return str(jax.make_jaxpr(pure)(state, (inputs, targets)))

    assert "HIGHEST" in code()
    with hg.precision("bf16"):
        assert "HIGHEST" not in code()


def test_inference() -> None:
    model, _, inputs, _ = CASES["batch-norm"]()
    state = hgj.init(model, hg.optimizers.SGD())
    found = jax.jit(hgj.forward(model))(state, *inputs)
    assert_close(found, model(*inputs), "other arrays")


def test_what_cannot_be_done_is_refused() -> None:
    model, loss, inputs, targets = mlp()
    optimizer = hg.optimizers.SGD()
    state = hgj.init(model, optimizer)
    with pytest.raises(ArgumentError, match=r"^jax.step: model is 3; allowed: a layer$"):
        hgj.step(3, loss, optimizer)
    with pytest.raises(ArgumentError, match=r"^jax.init: model is 3; allowed: a layer$"):
        hgj.init(3, optimizer)
    with pytest.raises(ArgumentError, match=r"^jax.step: clip_norm is 0; allowed: a positive"):
        hgj.step(model, loss, optimizer, clip_norm=0)
    with pytest.raises(ArgumentError, match=r"^jax.step: the batch is .*; allowed: \(inputs, "):
        hgj.step(model, loss, optimizer)(state, inputs)
    of_each = hg.losses.CrossEntropy(reduction="none")
    with pytest.raises(ShapeError, match=r"^jax.step: the loss has shape \(4,\); allowed: one "):
        jax.jit(hgj.step(model, of_each, optimizer))(state, (inputs, targets))
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ArgumentError, match=r"^jax.init: the model is float64; allowed: float32"):
        hgj.init(model, optimizer)
