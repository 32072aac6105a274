"""Folders that are missing, damaged, or of another architecture end in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, DataError
from tests.io.hf.layouts import Layout, layout, write_folder, write_safetensors

Change = Callable[[Path], Any]


def _config(**entries: Any) -> Change:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))

    return change


def _text(text: str) -> Change:
    return lambda folder: (folder / "config.json").write_text(text)


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])


def _arrays(change: Callable[[dict[str, np.ndarray]], Any]) -> Change:
    def changed(folder: Path) -> None:
        arrays = dict(layout("llama").arrays)
        change(arrays)
        write_safetensors(folder / "model.safetensors", arrays)

    return changed


def _integers(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(b'"F32"', b'"I32"'))


LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
NORM, DOWN = "model.norm.weight", "model.layers.1.mlp.down_proj.weight"

DAMAGES: dict[str, tuple[Change, str]] = {
    "no config": (lambda f: (f / "config.json").unlink(), "config.json is missing; expected the d"),
    "no JSON": (_text("{"), "config.json is not JSON"),
    "no table": (_text("[1]"), "config.json is no table; expected the description of a model"),
    "no kind": (_text("{}"), "model_type is missing; expected llama or mistral or qwen2"),
    "another kind": (_config(model_type="t5"), "model_type is 't5'; expected llama or mistral or"),
    "a kind of no text": (_config(model_type=[1]), "model_type is .*; expected llama or mistral"),
    "no size": (_config(hidden_size=None), "hidden_size is None; expected a whole number from 1"),
    "a negative size": (_config(vocab_size=-3), "vocab_size is -3; expected a whole number from"),
    "a huge size": (_config(vocab_size=10**12), "config.json describes no model of the folder: "),
    "more than the file": (_config(num_hidden_layers=50), "describes no model of the folder: .*"),
    "another activation": (_config(hidden_act="relu"), "hidden_act is 'relu'; expected silu or sw"),
    "a window": (_config(sliding_window=4), "sliding_window is 4; expected null, because every"),
    "windows": (
        _config(layer_types=["full_attention", "sliding_attention"]),
        "layer_types is .*; expected a list of full_attention",
    ),
    "layers of no list": (_config(layer_types=3), "layer_types is '3'; expected a list of full_"),
    "a number too large": (_config(rms_norm_eps=10**400), "rms_norm_eps is an integer of .* bits;"),
    "part of a head": (_config(partial_rotary_factor=0.5), "partial_rotary_factor is 0.5; expect"),
    "quantized": (_config(quantization_config={"bits": 4}), "quantization_config is .*; expected"),
    "another scaling": (
        _config(rope_parameters={"rope_type": "dynamic", "factor": 2.0}),
        "rope_type is 'dynamic'; allowed: linear, llama3, yarn",
    ),
    "a base of 0": (
        _config(rope_theta=None, rope_parameters={"rope_theta": 0}),
        "rope_theta is 0; expected a number above 0",
    ),
    "an older base of 0": (
        _config(rope_theta=0, rope_parameters=None),
        "rope_theta is 0; expected a number above 0",
    ),
    "two bases": (
        _config(rope_theta=5e5, rope_parameters={"rope_theta": 1e4}),
        "rope_theta is 500000.0; expected what rope_parameters says, 10000.0",
    ),
    "two scalings": (
        _config(rope_scaling={"factor": 2.0}, rope_parameters=LINEAR),
        "rope_scaling is 'factor=2.0'; expected what rope_parameters says, 4.0",
    ),
    "sections of another kind": (
        _config(rope_parameters={"rope_type": "default", "mrope_section": [2, 1, 1]}),
        "mrope_section of the positions is .*; expected null, because their rope_type is default",
    ),
    "a base of no number": (_config(rope_parameters={"rope_theta": "x"}), "rope_theta is 'x'; exp"),
    "a scaling of no table": (_config(rope_parameters=3), "rope_parameters is 3; expected a table"),
    "part of a head in a table": (
        _config(rope_parameters={"rope_type": "default", "partial_rotary_factor": 0.5}),
        "partial_rotary_factor is 0.5; expected 1.0",
    ),
    "rotary tables of other layers": (
        _config(
            rope_parameters={"full_attention": LINEAR, "sliding_attention": {"rope_theta": 1e4}}
        ),
        "rope_parameters is .*; expected one table, or one for full_attention that goes for every",
    ),
    "no rotary table of these layers": (
        _config(layer_types=["full_attention"] * 2, rope_parameters={"sliding_attention": LINEAR}),
        "rope_parameters is .*; expected one table, or one for full_attention that goes for every",
    ),
    "a rotary table beside a number": (
        _config(rope_parameters={"full_attention": LINEAR, "rope_theta": 1e4}),
        "rope_parameters is .*; expected one table, or one for full_attention that goes for every",
    ),
    "scalings of which one says more": (
        _config(rope_scaling={"rope_theta": 1e4}, rope_parameters=LINEAR),
        "rope_scaling is 'factor=None'; expected what rope_parameters says, 4.0",
    ),
    "a null for yes": (_config(is_causal=None), "is_causal is None; expected True"),
    "a null for a number": (_config(rms_norm_eps=None), "rms_norm_eps is None; expected a number"),
    "attention both ways": (_config(is_causal=False), "is_causal is False; expected True"),
    "odd heads": (_config(head_dim=3), "head_size is 3; allowed: an even number"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "has no weights; expected model."),
    "truncated": (_cut, "model.safetensors is damaged .*; expected a safetensors file"),
    "integers": (_integers, "is of type I32; expected one of F64, F32, F16, BF16"),
    "an array less": (_arrays(lambda a: a.pop(NORM)), "has no norm.weight; expected the arrays th"),
    "an array more": (
        _arrays(lambda a: a.update({"model.layers.0.extra": a[NORM]})),
        "has model.layers.0.extra, which the model has not; expected the arrays that config",
    ),
    "another shape": (
        _arrays(lambda a: a.update({DOWN: a[DOWN].T})),
        r"down_proj.weight has shape \(12, 8\); expected \(8, 12\)",
    ),
}


@pytest.mark.parametrize(("change", "message"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_folder(change: Change, message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, layout("llama"))
    change(folder)
    with pytest.raises(DataError, match=message) as error:
        hg.Llama.from_pretrained(folder)
    assert "\n" not in str(error.value)


def test_entries_that_nothing_knows_are_refused_with_their_names(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, layout("llama"), rope_interleaved=False, use_cache=False)
    hg.Llama.from_pretrained(folder)
    write_folder(tmp_path, layout("llama"), attn_logit_softcapping=50.0, unread=[1])
    said = "config.json: nothing here knows 'attn_logit_softcapping', 'unread'; expected entries th"
    with pytest.raises(DataError, match=said):
        hg.Llama.from_pretrained(folder)


@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen2", "qwen3", "bert"])
@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("embedding_multiplier", 12.0),
        ("logits_scaling", 8.0),
        ("rope_local_base_freq", 1e4),
        ("is_encoder_decoder", True),
        ("attn_temperature_tuning", True),
        ("query_pre_attn_scalar", 256),
        ("attention_chunk_size", 0),
    ],
)
def test_settings_of_other_families_are_refused(name, entry, value, tmp_path: Path) -> None:
    found = layout(name)
    folder = write_folder(tmp_path, found, **{entry: value})
    with pytest.raises(DataError, match=f"nothing here knows '{entry}'"):
        found.kind.from_pretrained(folder)


def test_settings_of_generation_and_training_may_be_there(tmp_path: Path) -> None:
    found = layout("llama")
    settings = {"num_return_sequences": 1, "typical_p": 1.0, "layerdrop": 0.1, "_attn": "eager"}
    folder = write_folder(tmp_path, found, **settings)
    found.kind.from_pretrained(folder)


def test_a_null_says_what_an_absent_entry_says(tmp_path: Path) -> None:
    found = layout("qwen2")
    nulls = {"mlp_bias": None, "head_dim": None, "layer_types": None, "rope_scaling": None}
    rotary = {**found.config["rope_parameters"], "attention_factor": None}
    settings = {"rope_parameters": rotary, "sliding_window": 4, "max_window_layers": 0}
    folder = write_folder(tmp_path, found, **nulls, **settings)
    assert found.kind.from_pretrained(folder).settings["head_size"] == 4


def test_what_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none is no folder; expected one with config.json"):
        hg.Llama.from_pretrained(tmp_path / "none")
    with pytest.raises(ArgumentError, match="from_pretrained: path is 3; allowed: the path of a"):
        hg.Llama.from_pretrained(3)  # type: ignore[arg-type]


def _index(**entries: Any) -> Change:
    def change(folder: Path) -> None:
        (folder / "model.safetensors.index.json").write_text(json.dumps(entries))

    return change


FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
PARTS: dict[str, tuple[Change, str]] = {
    "a part less": (lambda f: (f / SECOND).unlink(), "00002-of-00002.safetensors is missing; exp"),
    "no map": (_index(), "index.json has no weight_map; expected an index of safetensors files"),
    "another folder": (
        _index(weight_map={NORM: "../other.safetensors"}),
        "model.norm.weight is in '../other.safetensors'; expected a file of its folder",
    ),
    "not in its part": (
        _index(weight_map={"lm_head.bias": FIRST}),
        "00001-of-00002.safetensors has no lm_head.bias; expected the arrays that model",
    ),
}


@pytest.mark.parametrize(("change", "message"), PARTS.values(), ids=PARTS)
def test_damaged_parts(change: Change, message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, layout("llama"), parts=2)
    change(folder)
    with pytest.raises(DataError, match=message):
        hg.Llama.from_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "entries", "message"),
    [
        ("gpt2", {"activation_function": "relu"}, "activation_function is 'relu'; expected gelu o"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "layer_idx is True; expected False"),
        ("qwen2", {"use_sliding_window": True}, "use_sliding_window is True; expected False"),
        ("bert", {"position_embedding_type": "relative_key"}, "'relative_key'; expected 'absolute"),
        ("bert", {"is_decoder": True}, "is_decoder is True; expected False"),
        ("bert", {"pruned_heads": {"0": [1]}}, "pruned_heads is .*; expected {}"),
        ("gpt2", {"is_causal": False}, "is_causal is False; expected True"),
        ("gpt2", {"sliding_window": 4}, "nothing here knows 'sliding_window'"),
        ("bert", {"sliding_window": 4}, "nothing here knows 'sliding_window'"),
    ],
)
def test_settings_without_a_counterpart(
    name: str, entries: dict[str, Any], message: str, tmp_path: Path
) -> None:
    found = layout(name)
    folder = write_folder(tmp_path, found, **entries)
    with pytest.raises(DataError, match=message):
        found.kind.from_pretrained(folder)


def test_a_head_that_is_not_there_is_missed(tmp_path: Path) -> None:
    found = layout("llama")
    arrays = {key: array for key, array in found.arrays.items() if key != "lm_head.weight"}
    folder = write_folder(tmp_path, Layout(found.config, arrays, {}))
    with pytest.raises(DataError, match=r"has no lm_head.weight; expected the arrays that config"):
        hg.Llama.from_pretrained(folder)


def test_a_pooler_that_is_not_there_is_missed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, layout("bert masked"))
    hg.Bert.from_pretrained(folder, pooling="mean", normalize=True)
    with pytest.raises(DataError, match=r"has no pooler.dense.weight; expected the arrays that"):
        hg.Bert.from_pretrained(folder, pooling="first")


def test_a_class_of_ones_own_has_no_layout(tmp_path: Path) -> None:
    class Own(hg.Llama):
        """A model of a program."""

    with pytest.raises(ArgumentError, match="Own has no layout of Hugging Face; allowed: GPT, Ll"):
        Own.from_pretrained(tmp_path)
