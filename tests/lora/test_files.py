"""Adapters in the files of peft: names, reading back, and what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import handgrad as hg
from handgrad.errors import ArgumentError, DataError
from tests.lora.test_adapting import TOKENS, adapted, llama


def test_names_and_settings_are_those_of_peft(tmp_path: Path) -> None:
    model = adapted(llama(blocks=1), targets=("q_proj", "linear2"), alpha=6)
    hg.lora.save(model, tmp_path, base="some/model")
    arrays = load_file(tmp_path / "adapter_model.safetensors")
    start = "base_model.model.model.layers.0"
    assert {name: array.shape for name, array in arrays.items()} == {
        f"{start}.self_attn.q_proj.lora_A.weight": (2, 8),
        f"{start}.self_attn.q_proj.lora_B.weight": (8, 2),
        f"{start}.mlp.down_proj.lora_A.weight": (2, 12),
        f"{start}.mlp.down_proj.lora_B.weight": (8, 2),
    }
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    expected = {
        "peft_type": "LORA",
        "r": 2,
        "lora_alpha": 6.0,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": ["down_proj", "q_proj"],
        "base_model_name_or_path": "some/model",
    }
    assert {name: config[name] for name in expected} == expected


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"targets": ("k_proj", "o_proj"), "dropout": 0.1, "alpha": 5},
        {"targets": "all-linear"},
        {"bias": "all"},
    ],
)
@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt"])
def test_an_adapter_is_read_back(tmp_path: Path, kind: str, settings: dict[str, Any]) -> None:
    def make() -> Any:
        if kind == "gpt":
            rng = np.random.default_rng(0)
            return hg.GPT(11, context=8, width=8, heads=2, blocks=2, rng=rng)
        return llama(attention_bias=("q_proj", "k_proj", "v_proj") if kind == "qwen2" else False)

    model = adapted(make(), **settings)
    hg.lora.save(model, tmp_path)
    again = make()
    hg.lora.load(again, tmp_path)
    assert set(again.parameters) == set(model.parameters)
    assert np.array_equal(again(TOKENS), model(TOKENS))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"peft_type": "IA3"}, "peft_type is IA3; expected LORA"),
        ({"use_dora": True}, "use_dora is True"),
        ({"r": "two"}, "r is two; expected int"),
        ({"r": 3}, r"lora_A.weight is \(2, 8\); expected \(3, 8\)"),
        ({"r": 100}, "rank is 100; allowed: 1 to 8"),
        ({"target_modules": ["q_proj"]}, "v_proj.lora_A.weight is .*; expected no such array"),
        ({"target_modules": ["c_attn"]}, "targets has 'c_attn'"),
        ({"bias": "some"}, "bias is 'some'"),
    ],
)
def test_an_adapter_that_does_not_fit(tmp_path: Path, changes: Any, found: str) -> None:
    hg.lora.save(adapted(), tmp_path)
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    model = llama()
    with pytest.raises(DataError, match=found):
        hg.lora.load(model, tmp_path)
    assert not hg.lora.is_adapted(model)
    assert set(model.parameters) == set(llama().parameters)


def test_files_that_are_missing_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="adapter_config"):
        hg.lora.load(llama(), tmp_path)
    hg.lora.save(adapted(), tmp_path)
    (tmp_path / "adapter_model.safetensors").write_bytes(b"no arrays")
    with pytest.raises(DataError, match="damaged"):
        hg.lora.load(llama(), tmp_path)
    save_file({"x": np.zeros(2, np.float32)}, tmp_path / "adapter_model.safetensors")
    with pytest.raises(DataError, match="missing; expected"):
        hg.lora.load(llama(), tmp_path)


def test_a_model_without_an_adapter_has_none_to_write(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="not adapted"):
        hg.lora.save(llama(), tmp_path)
    with pytest.raises(ArgumentError, match="adapted already"):
        hg.lora.load(adapted(), tmp_path)
