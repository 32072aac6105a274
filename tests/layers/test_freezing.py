"""Frozen parameters: buffers, without gradients, and without work below what is trained."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.layers import Layer, walk
from tests.layers.cases import CASES, Case
from tests.rows import rows

RNG = np.random.default_rng


def gpt(**settings: Any) -> hg.GPT:
    sizes: dict[str, Any] = {"context": 8, "width": 8, "heads": 2, "blocks": 2}
    return hg.GPT(11, **sizes, dropout=0.1, rng=RNG(0), **settings)


def transformer(**settings: Any) -> hg.Transformer:
    sizes: dict[str, Any] = {"d_model": 8, "heads": 2, "hidden": 12}
    depth: dict[str, Any] = {"encoder_blocks": 1, "decoder_blocks": 1}
    return hg.Transformer(11, 11, **sizes, **depth, positions="learned", rng=RNG(0), **settings)


TOKENS = RNG(1).integers(0, 11, (3, 5))
VECTORS = RNG(2).standard_normal((3, 5, 4)).astype(np.float32)
MODELS: dict[str, tuple[Callable[[], Layer], tuple[Any, ...]]] = {
    "gpt": (gpt, (TOKENS,)),
    "gpt, head": (lambda: gpt(tied=False), (TOKENS,)),
    "transformer": (transformer, (TOKENS, None, TOKENS)),
    "transformer, tied": (lambda: transformer(tied=True), (TOKENS, None, TOKENS)),
    "transformer, shared": (lambda: transformer(tied=True, shared=True), (TOKENS, None, TOKENS)),
    "seq2seq": (
        lambda: hg.Seq2Seq(11, 11, hidden=6, embedding=4, rng=RNG(0)),
        (TOKENS, None, TOKENS),
    ),
    "cls_encoder": (lambda: hg.ClsEncoder(4, 6, 5, 3, rng=RNG(0)), (VECTORS,)),
    "two_layer_net": (lambda: hg.TwoLayerNet(5, 4, 6, 3, rng=RNG(0)), (VECTORS,)),
    "lstm": (lambda: hg.LSTM(4, 6, num_layers=2, learn_h0=True, rng=RNG(0)), (VECTORS,)),
}


def with_parameters(model: Layer) -> list[Layer]:
    return [layer for _, layer in walk(model) if layer.parameter_names]


def gradients_of(model: Layer, inputs: tuple[Any, ...], **settings: Any) -> Any:
    """Of a copy, so that every call draws the same masks; cotangents are random."""
    twin = copy.deepcopy(model)
    y, cache = twin.forward_y(*inputs, training=True)
    dy = RNG(5).standard_normal(y.shape).astype(y.dtype)
    return twin.backward_y(dy, cache, **settings)[1]


def check_frozen(model: Layer, inputs: tuple[Any, ...]) -> None:
    """Each layer frozen in turn: the other gradients are the bits that they were before."""
    every = gradients_of(model, inputs)
    arrays = {**model.parameters, **model.buffers}
    for layer in with_parameters(model):
        layer.freeze()
        left = gradients_of(model, inputs)
        assert set(left) == set(model.parameters)
        assert set(left).isdisjoint(model.frozen_parameters)
        assert {**model.parameters, **model.buffers}.keys() == arrays.keys()
        for name, gradient in left.items():
            assert np.array_equal(gradient, every[name]), name
        flat = copy.deepcopy(model).bind().zeros_like()
        gradients_of(model, inputs, gradients=flat, input_gradient=False)
        for name, gradient in left.items():
            assert np.array_equal(flat[name], gradient), name
        layer.unfreeze()
    assert set(model.parameters) == set(every)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_the_rest_are_the_same_bits(name: str) -> None:
    make, inputs = MODELS[name]
    check_frozen(make(), inputs)


@rows("case", CASES, ids=[case.name for case in CASES])
def test_every_layer_can_be_frozen(case: Case) -> None:
    check_frozen(case.make(RNG(3)), (case.batch(),))


@pytest.mark.parametrize("name", MODELS)
def test_only_the_last_layer_is_trained(name: str) -> None:
    make, inputs = MODELS[name]
    model = make()
    every = gradients_of(model, inputs)
    model.freeze()
    with_parameters(model)[-1].unfreeze()
    flat = copy.deepcopy(model).bind().zeros_like()
    gradients_of(model, inputs, gradients=flat, input_gradient=False)
    assert set(flat) == set(model.parameters)
    for array_name, gradient in flat.items():
        assert np.array_equal(gradient, every[array_name]), array_name


@pytest.mark.parametrize("name", MODELS)
def test_all_frozen(name: str) -> None:
    make, inputs = MODELS[name]
    model = make().freeze()
    assert not model.is_trained
    assert not model.parameters
    assert gradients_of(model, inputs) == {}
    assert gradients_of(model, inputs, input_gradient=False) == {}


def test_nothing_runs_below_the_first_layer_that_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = gpt(tied=False).freeze()
    model.blocks.blocks[1].layers["feed_forward"].unfreeze()

    def unexpected(*_: Any, **__: Any) -> None:
        pytest.fail("backward went on below the first layer that is trained")

    monkeypatch.setattr(model.blocks.blocks[0], "backward", unexpected)
    monkeypatch.setattr(model.blocks.blocks[1].layers["attention"], "backward", unexpected)
    monkeypatch.setattr(model.tokens, "backward", unexpected)
    y, cache = model.forward(TOKENS, training=True)
    _, gradients = model.backward(np.ones_like(y), cache)
    assert all(name.startswith("blocks.1.feed_forward.") for name in gradients)
    assert set(gradients) == set(model.parameters)


def test_training_leaves_frozen_parameters_as_they_are() -> None:
    model = gpt()
    model.blocks.freeze()
    before = {name: array.copy() for name, array in model.frozen_parameters.items()}
    trainer = hg.Trainer(model, hg.losses.CrossEntropy(class_axis=-1), lr=0.1, batch_size=2)
    tokens = model.tokens.weight.copy()
    trainer.fit(TOKENS, TOKENS, epochs=2)
    assert set(trainer.parameters) == {"tokens.weight", "positions.weight"}
    assert not np.array_equal(tokens, model.tokens.weight)
    for name, array in model.frozen_parameters.items():
        assert np.array_equal(array, before[name]), name


def test_the_summary_says_how_many_are_trained() -> None:
    model = hg.Sequential(hg.Dense(4, 3, rng=RNG(0)), hg.Dense(3, 2, rng=RNG(0)))
    model[0].freeze()
    for shape in (None, (4,)):
        summary = model.summary(shape)
        assert (summary.parameters, summary.trained) == (23, 8)
        assert "8 are trained" in " ".join(str(summary).split())


def test_the_checker_leaves_frozen_parameters_out() -> None:
    layer = hg.Dense(4, 3, rng=RNG(0)).freeze()
    report = hg.check(layer, RNG(1).standard_normal((5, 4)))
    assert report.ok
