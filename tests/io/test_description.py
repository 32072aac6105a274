"""Every layer and model comes back from its file with the same bits and settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import initializers
from handgrad.errors import DataError, HandgradError
from handgrad.io.description import known_layers
from handgrad.io.identity import describe_model
from handgrad.layers import Layer, walk
from tests.layers.cases import CASES, Case

Make = Callable[[np.random.Generator], Layer]

MODELS: dict[str, Make] = {
    "lora-dense": lambda rng: hg.LoRADense(
        hg.Dense(4, 5, rng=rng, activation="silu"), rank=2, dropout=0.1, rng=rng
    ),
    "recompute": lambda rng: hg.Recompute(hg.Dense(4, 5, rng=rng)),
    "mlp": lambda rng: hg.MLP((4, 5, 3), rng=rng, dropout=0.2),
    "cnn": lambda rng: hg.CNN((1, 6, 6), (2, 3), 4, rng=rng, batch_norm=True, dropout=0.1),
    "cls-encoder": lambda rng: hg.ClsEncoder(3, 4, 5, 2, rng=rng, standardize=None),
    "two-layer-net": lambda rng: hg.TwoLayerNet(4, 3, 5, 2, rng=rng),
    "sequence-classifier": lambda rng: hg.SequenceClassifier(
        3, 4, 2, rng=rng, cell="leaky_rnn", alpha=0.3, bidirectional=True
    ),
    "sequence-tagger": lambda rng: hg.SequenceTagger(3, 4, 2, rng=rng, vocabulary=5),
    "gpt": lambda rng: hg.GPT(
        7, context=5, width=4, heads=2, blocks=2, rng=rng, dropout=0.1, positions="rotary"
    ),
    "llama": lambda rng: hg.Llama(
        7,
        context=5,
        width=4,
        heads=2,
        blocks=2,
        hidden=6,
        rng=rng,
        kv_heads=1,
        rotary_scaling={"rope_type": "linear", "factor": 2.0},
        attention_bias=("q_proj", "k_proj"),
    ),
    "bert": lambda rng: hg.Bert(7, context=5, width=4, heads=2, blocks=2, rng=rng, pooling="first"),
    "seq2seq": lambda rng: hg.Seq2Seq(7, 5, embedding=3, hidden=4, rng=rng, dropout=0.1),
    "transformer": lambda rng: hg.Transformer(
        7, 5, rng=rng, d_model=4, heads=2, hidden=5, encoder_blocks=1, decoder_blocks=1, tied=True
    ),
}


def _round_trip(model: Layer, folder: Path) -> Layer:
    model.save(folder / "model.safetensors")
    return hg.load(folder / "model.safetensors").model


def _same(model: Layer, loaded: Layer) -> None:
    for found, expected in (
        (loaded.parameters, model.parameters),
        (loaded.buffers, model.buffers),
    ):
        assert list(found) == list(expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            assert found[name].tobytes() == array.tobytes()
    assert describe_model(loaded) == describe_model(model)
    for (_, a), (_, b) in zip(walk(loaded), walk(model), strict=True):
        assert [*a.settings] == [*b.settings]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_layer_comes_back_as_it_was(case: Case, tmp_path: Path) -> None:
    model = case.make(np.random.default_rng(3))
    x = case.batch()
    model.forward(x, training=True)  # running statistics
    loaded = _round_trip(model, tmp_path)
    _same(model, loaded)
    y, again = model.forward_y(x)[0], loaded.forward_y(x)[0]
    assert np.asarray(y).tobytes() == np.asarray(again).tobytes()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    model = MODELS[name](np.random.default_rng(3))
    _same(model, _round_trip(model, tmp_path))


def test_every_layer_and_model_has_been_looked_at() -> None:
    rng = np.random.default_rng(0)
    made = [case.make(rng) for case in CASES] + [make(rng) for make in MODELS.values()]
    seen = {type(layer).__name__ for model in made for _, layer in walk(model)}
    assert set(known_layers()) - seen <= {"Layer", "OpLayer", "TransformerDecoder"}
    assert "TransformerDecoder" in {type(layer).__name__ for _, layer in walk(made[-1])}


@pytest.mark.parametrize(
    "initializer",
    [
        initializers.orthogonal,
        initializers.zeros,
        partial(initializers.constant, value=0.5),
        partial(initializers.truncated_normal, std=0.1),
    ],
)
def test_first_values_are_described_and_not_drawn(initializer: Any, tmp_path: Path) -> None:
    model = hg.Sequential(hg.Dense(3, 4, rng=np.random.default_rng(1), initializer=initializer))
    loaded = _round_trip(model, tmp_path)
    _same(model, loaded)
    assert repr(loaded.layers["0"].settings["initializer"]) == repr(initializer)


class Doubled(hg.Dense):
    """A layer of a program."""


def test_a_layer_of_a_program_keeps_its_weights_alone(tmp_path: Path) -> None:
    model = Doubled(3, 2, rng=np.random.default_rng(0))
    model.save(tmp_path / "own.safetensors")
    with pytest.raises(DataError, match="weights alone, because Doubled is no layer of handgrad"):
        hg.load(tmp_path / "own.safetensors")
    other = Doubled(3, 2, rng=np.random.default_rng(1))
    other.load_weights(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(other.weight, model.weight)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda model: setattr(model.layers["0"], "in_features", 9), "in_features was changed"),
        (
            lambda model: setattr(model.layers["0"], "initializer", lambda *_, **__: None),
            "was changed",
        ),
    ],
)
def test_a_model_that_was_changed_says_so(
    change: Callable[[Layer], None], reason: str, tmp_path: Path
) -> None:
    model = hg.Sequential(hg.Dense(3, 2), seed=0)
    change(model)
    model.save(tmp_path / "m.safetensors")
    with pytest.raises(DataError, match=reason):
        hg.load(tmp_path / "m.safetensors")


def test_a_layer_that_stands_twice_is_not_described(tmp_path: Path) -> None:
    layer = hg.Dense(3, 3, rng=np.random.default_rng(0))
    hg.Sequential(layer, layer).save(tmp_path / "m.safetensors")
    with pytest.raises(DataError, match="a Dense stands in it twice"):
        hg.load(tmp_path / "m.safetensors")


def test_a_model_without_weights_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(HandgradError, match="has no weights yet"):
        hg.Dense(None, 3).save(tmp_path / "m.safetensors")
