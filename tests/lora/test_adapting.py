"""Adapting a model: what is replaced and frozen, training, merging, saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from handgrad.layers import Dense, LoRADense, walk

RNG = np.random.default_rng
TOKENS = RNG(1).integers(0, 11, (8, 6))
LOSS = hg.losses.CrossEntropy(class_axis=-1)


def llama(**settings: Any) -> hg.Llama:
    sizes: dict[str, Any] = {"context": 8, "width": 8, "heads": 2, "kv_heads": 1, "hidden": 12}
    return hg.Llama(11, **{**sizes, "blocks": 2, "tied": True, **settings}, rng=RNG(0))


def adapted(model: Any = None, **settings: Any) -> Any:
    """With values in B too, as after some steps."""
    found = hg.lora.adapt(llama() if model is None else model, **{"rank": 2, **settings})
    for _, layer in hg.lora.adapted_layers(found):
        layer.lora_b[...] = RNG(4).standard_normal(layer.lora_b.shape) / 4
    return found


def train(model: Any, out: Path | None = None, **settings: Any) -> hg.Trainer:
    trainer = hg.Trainer(model, LOSS, lr=0.01, batch_size=2, out=out, progress="off")
    trainer.fit(TOKENS[:, :-1], TOKENS[:, 1:], **{"epochs": 2, **settings})
    return trainer


def test_only_the_targets_are_trained() -> None:
    model = adapted()
    names = [name for name, _ in hg.lora.adapted_layers(model)]
    ends = [f"blocks.{i}.attention.inner.{name}_proj" for i in (0, 1) for name in "qv"]
    assert names == ends
    assert set(model.parameters) == {f"{name}.lora_{kind}" for name in ends for kind in "ab"}


def test_first_outputs_are_the_same_bits() -> None:
    expected = llama()(TOKENS)
    assert np.array_equal(hg.lora.adapt(llama(), rank=2)(TOKENS), expected)


@pytest.mark.parametrize(("bias", "trained"), [("none", 0), ("lora_only", 4), ("all", 17)])
def test_biases(bias: str, trained: int) -> None:
    """GPT has four and two biases in the linear maps of a block, two betas there, one behind."""
    model = hg.GPT(11, context=8, width=8, heads=2, blocks=2, rng=RNG(0))
    hg.lora.adapt(model, rank=2, bias=bias)
    names = [name for name in model.parameters if name.endswith(("bias", "beta"))]
    assert len(names) == trained
    _, cache = model.forward(TOKENS, training=True)
    dlogits = RNG(3).standard_normal((8, 6, 11)).astype(np.float32)
    assert set(model.backward(dlogits, cache)[1]) == set(model.parameters)


def test_all_linear_is_every_dense_layer_but_the_head() -> None:
    model = adapted(llama(tied=False), targets="all-linear")
    left = [name for name, layer in walk(model) if isinstance(layer, Dense)]
    assert left == ["head"]


def test_a_sequential_model_calls_what_stands_in_it() -> None:
    model = hg.Sequential(hg.Dense(4, 6, activation="tanh"), hg.Dense(6, 3), seed=0)
    adapted(model, targets=("0",))
    assert isinstance(model[0], LoRADense)
    x = RNG(2).standard_normal((5, 4))
    assert hg.check(model, x).ok


def test_training_leaves_the_weights_as_they_are() -> None:
    model = adapted(dropout=0.1)
    frozen = {name: array.copy() for name, array in model.frozen_parameters.items()}
    before = {name: array.copy() for name, array in model.parameters.items()}
    train(model)
    for name, array in model.frozen_parameters.items():
        assert np.array_equal(array, frozen[name]), name
    for name, array in model.parameters.items():
        assert not np.array_equal(array, before[name]), name


def test_merging_keeps_outputs() -> None:
    model = adapted()
    expected = model(TOKENS)
    hg.lora.merge(model)
    assert not any(isinstance(layer, LoRADense) for _, layer in walk(model))
    assert set(model.parameters) == set(llama().parameters)
    assert np.allclose(model(TOKENS), expected, rtol=1e-5, atol=1e-6)


def test_a_saved_model_is_adapted_when_it_is_read(tmp_path: Path) -> None:
    model = adapted(dropout=0.1)
    model.save(tmp_path / "model.safetensors")
    again = hg.load(tmp_path / "model.safetensors").model
    assert set(again.parameters) == set(model.parameters)
    assert np.array_equal(again(TOKENS), model(TOKENS))


def test_checkpoints_have_no_frozen_arrays_and_resume_to_the_same_bits(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    whole, parts = adapted(dropout=0.1), adapted(dropout=0.1)
    train(whole, tmp_path / "whole", epochs=3)
    train(parts, tmp_path / "parts", epochs=1)
    resumed = adapted(dropout=0.1)
    train(resumed, tmp_path / "parts", epochs=3, resume=True)
    for name, array in whole.parameters.items():
        assert np.array_equal(array, resumed.parameters[name]), name
    (checkpoint,) = (tmp_path / "whole").glob("**/*checkpoint*/*.safetensors")
    assert not any(name.endswith("q_proj.weight") for name in load_file(checkpoint))


def test_a_run_on_other_weights_is_not_resumed(tmp_path: Path) -> None:
    train(adapted(), tmp_path, epochs=1)
    other = llama()
    other.blocks.norm.gamma *= 2
    with pytest.raises(hg.errors.RunError, match=r"frozen.blocks.norm.gamma"):
        train(adapted(other), tmp_path, epochs=2, resume=True)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"targets": ("w_proj",)}, "targets has 'w_proj'; allowed: q_proj, "),
        ({"targets": ()}, "targets is empty"),
        ({"targets": ("head",)}, "targets has 'head'"),
        ({"rank": 9}, "rank is 9; allowed: 1 to 8"),
        ({"bias": "some"}, "bias is 'some'"),
    ],
)
def test_impossible_settings_change_nothing(settings: dict[str, Any], found: str) -> None:
    model = llama(tied=False)
    with pytest.raises(ArgumentError, match=found):
        hg.lora.adapt(model, **settings)
    assert not model.frozen_parameters
    assert not hg.lora.is_adapted(model)


def test_twice_and_never() -> None:
    with pytest.raises(ArgumentError, match="adapted already"):
        hg.lora.adapt(adapted())
    with pytest.raises(ArgumentError, match="not adapted"):
        hg.lora.merge(llama())
