"""Folders of every layout: outputs as transformers computes them, and back into a folder."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, DataError, HandgradWarning
from tests.io.hf.layouts import LAYOUTS, Layout, layout, outputs_of, write_folder
from tests.tolerances import assert_close

ALL = pytest.mark.parametrize("name", LAYOUTS)


@ALL
def test_outputs_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    found = layout(name)
    model = found.kind.from_pretrained(write_folder(tmp_path, found), **found.settings)
    assert_close(outputs_of(model), found.outputs["y"], "float32 functions", name)


@pytest.mark.parametrize(
    "settings", [{"pooling": "first"}, {"pooling": "mean", "normalize": True}, {"pooling": "none"}]
)
def test_the_pooling_comes_back(settings: dict[str, Any], tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "theirs", layout("bert"))
    model = hg.Bert.from_pretrained(folder, **settings)
    model.save_pretrained(tmp_path / "ours")
    again = hg.Bert.from_pretrained(tmp_path / "ours")
    assert again.settings == model.settings
    assert set(again.parameters) == set(model.parameters)
    np.testing.assert_array_equal(outputs_of(again), outputs_of(model))


def test_weights_without_a_place_are_named(tmp_path: Path) -> None:
    found = layout("bert masked")
    extra = {"cls.predictions.bias": np.zeros(11, np.float32)}
    folder = write_folder(tmp_path / "masked", Layout(found.config, {**found.arrays, **extra}, {}))
    said = "Bert has no place for the weights cls.predictions.bias, which are left out"
    with pytest.warns(HandgradWarning, match=said):
        hg.Bert.from_pretrained(folder, pooling="none")
    folder = write_folder(tmp_path / "pooler", layout("bert"))
    with pytest.warns(HandgradWarning, match=r"pooler.dense.weight, pooler.dense.bias, which are"):
        hg.Bert.from_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "key"),
    [("gpt2", "transformer.wte.weight"), ("llama tied", "model.embed_tokens.weight")],
)
def test_a_tied_head_may_stand_in_the_file_but_be_no_other(
    name: str, key: str, tmp_path: Path
) -> None:
    found = layout(name)
    same = {**found.arrays, "lm_head.weight": found.arrays[key]}
    folder = write_folder(tmp_path, Layout(found.config, same, {}))
    found.kind.from_pretrained(folder)
    other = {**same, "lm_head.weight": same[key] + 1}
    write_folder(tmp_path, Layout(found.config, other, {}))
    with pytest.raises(DataError, match=r"has lm_head.weight, .* but tie_word_embeddings is true"):
        found.kind.from_pretrained(folder)
    assert "head.weight" not in found.kind.from_pretrained(folder, tied=True).parameters
    untied = found.kind.from_pretrained(folder, tied=False).parameters["head.weight"]
    np.testing.assert_array_equal(untied, other["lm_head.weight"])


def test_the_pooler_is_that_of_transformers(tmp_path: Path) -> None:
    found = layout("bert")
    model = hg.Bert.from_pretrained(write_folder(tmp_path, found), pooling="first")
    assert_close(outputs_of(model), found.outputs["pooled"], "float32 functions")


@ALL
def test_a_model_comes_back_from_its_folder(name: str, tmp_path: Path) -> None:
    found = layout(name)
    model = found.kind.from_pretrained(write_folder(tmp_path / "theirs", found), **found.settings)
    model.save_pretrained(tmp_path / "ours")
    again = found.kind.from_pretrained(tmp_path / "ours")
    assert again.settings == model.settings
    for key, array in model.parameters.items():
        np.testing.assert_array_equal(again.parameters[key], array, err_msg=key)


@ALL
def test_entries_that_change_no_number_are_written_again(name: str, tmp_path: Path) -> None:
    found = layout(name)
    kept = {"eos_token_id": [2, 3], "id2label": {"0": "no"}, "use_cache": False, "my_dropout": 0.3}
    folder = write_folder(tmp_path / "theirs", found, **kept, dtype="bfloat16")
    model = copy.deepcopy(found.kind.from_pretrained(folder, **found.settings))
    model.save_pretrained(tmp_path / "ours")
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert kept.items() <= written.items()
    assert written["dtype"] == written["torch_dtype"] == "float32"


@ALL
def test_what_is_written_has_the_names_and_values_that_were_read(name: str, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    found = layout(name)
    settings: dict[str, Any] = {"pooling": "first"} if "pooled" in found.outputs else {}
    model = found.kind.from_pretrained(write_folder(tmp_path / "theirs", found), **settings)
    model.save_pretrained(tmp_path / "ours")
    written = load_file(tmp_path / "ours" / "model.safetensors")
    prefix = {"gpt2": "transformer.", "bert": "bert."}.get(found.config["model_type"], "")
    plain = {key.removeprefix(prefix): array for key, array in found.arrays.items()}
    ours = {key.removeprefix(prefix): array for key, array in written.items()}
    assert set(ours) == set(plain)
    for key, array in plain.items():
        np.testing.assert_array_equal(ours[key], array, err_msg=key)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("parts", [1, 3])
def test_precision_and_parts_on_the_disk(dtype: str, parts: int, tmp_path: Path) -> None:
    found = layout("llama")
    if dtype == "bfloat16":  # numbers that it holds
        bits = {key: array.view(np.uint32) & 0xFFFF0000 for key, array in found.arrays.items()}
        found = Layout(found.config, {k: b.view(np.float32) for k, b in bits.items()}, {})
    folder = write_folder(tmp_path, found, dtype=dtype, parts=parts)
    model = hg.Llama.from_pretrained(folder)
    assert {array.dtype for array in model.parameters.values()} == {np.dtype(np.float32)}
    model.save_pretrained(tmp_path / "float32")
    whole = write_folder(tmp_path / "theirs", found)
    expected = hg.Llama.from_pretrained(whole).parameters
    for key, array in model.parameters.items():
        np.testing.assert_array_equal(array, expected[key], err_msg=key)


def test_older_names_of_norms_are_read(tmp_path: Path) -> None:
    found = layout("bert")
    older = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta"): array
        for key, array in found.arrays.items()
    }
    folder = write_folder(tmp_path, Layout(found.config, older, {}))
    model = hg.Bert.from_pretrained(folder, **found.settings)
    assert_close(outputs_of(model), found.outputs["y"], "float32 functions")


def test_rotary_settings_stand_in_either_form(tmp_path: Path) -> None:
    found = layout("llama linear")
    older = {
        **{key: value for key, value in found.config.items() if key != "rope_parameters"},
        "rope_theta": 10000.0,
        "rope_scaling": {"type": "linear", "factor": 4.0},
    }
    model = hg.Llama.from_pretrained(write_folder(tmp_path, Layout(older, found.arrays, {})))
    assert_close(outputs_of(model), found.outputs["y"], "float32 functions")


@pytest.mark.parametrize("layers", [None, ["full_attention"] * 2])
def test_rotary_settings_may_stand_once_for_each_type_of_layer(
    layers: list[str] | None, tmp_path: Path
) -> None:
    found = layout("llama linear")
    own = found.config["rope_parameters"]
    other = own if layers is None else {"rope_type": "default", "rope_theta": 1e4}
    tables = {"full_attention": own, "sliding_attention": other}
    folder = write_folder(tmp_path, found, layer_types=layers, rope_parameters=tables)
    model = hg.Llama.from_pretrained(folder)
    assert_close(outputs_of(model), found.outputs["y"], "float32 functions")


def test_settings_of_ones_own_go_before_those_of_the_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, layout("llama"))
    assert hg.Llama.from_pretrained(folder, dropout=0.1).dropout == 0.1
    model = hg.Llama.from_pretrained(folder, dtype=np.float64)
    assert model.tokens.weight.dtype == np.float64


def test_a_model_is_trained_and_kept_as_any_other(tmp_path: Path) -> None:
    model = hg.Llama.from_pretrained(write_folder(tmp_path, layout("llama3")))
    tokens = np.random.default_rng(0).integers(0, 11, (2, 6))
    logits, cache = model.forward(tokens)
    _, gradients = model.backward(np.ones_like(logits), cache)
    hg.optimizers.SGD(lr=0.1).step(model.parameters, gradients)
    model.save(tmp_path / "model.hg.safetensors")
    again = hg.load(tmp_path / "model.hg.safetensors").model
    np.testing.assert_array_equal(again.forward(tokens)[0], model.forward(tokens)[0])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            lambda rng: hg.GPT(
                5, context=4, width=4, heads=2, blocks=1, rng=rng, positions="rotary"
            ),
            "GPT has positions='rotary'; allowed in the layout of GPT-2: learned",
        ),
        (
            lambda rng: hg.Llama(
                5,
                context=4,
                width=4,
                heads=2,
                blocks=1,
                hidden=3,
                rng=rng,
                attention_bias=("q_proj",),
            ),
            r"Llama has attention_bias=\('q_proj',\); allowed in the layout of Llama: True, False",
        ),
        (
            lambda rng: hg.Bert(
                5, context=4, width=4, heads=2, blocks=1, rng=rng, activation="tanh"
            ),
            "Bert has activation='tanh'; allowed in the layout of BERT: gelu, relu or silu",
        ),
    ],
    ids=["GPT", "Llama", "Bert"],
)
def test_what_a_layout_cannot_say_is_not_written(model: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=message):
        model(np.random.default_rng(0)).save_pretrained(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_the_config_is_that_of_transformers(tmp_path: Path) -> None:
    found = layout("qwen2")
    hg.Llama.from_pretrained(write_folder(tmp_path, found)).save_pretrained(tmp_path / "ours")
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    shared = set(written) & set(found.config) - {"architectures"}
    assert {"hidden_size", "num_key_value_heads", "tie_word_embeddings"} <= shared
    assert {key: written[key] for key in shared} == {key: found.config[key] for key in shared}
