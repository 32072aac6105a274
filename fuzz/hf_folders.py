"""Folders of models by others: a config.json with anything in it, damaged arrays and indexes."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

import numpy as np

import handgrad as hg
from fuzz._judge import check_sentence
from fuzz.harness import Case
from fuzz.harness.surface import scratch
from handgrad.errors import HandgradError
from handgrad.io.hf.config import CONFIG
from handgrad.io.hf.weights import INDEX, WEIGHTS
from handgrad.models.pretrained import Pretrained

PATIENCE = 20.0
MEMORY = 256

_JUNK: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 10**9, 2**63, 10**400, 0.5, -0.0, 1e308, 1e-300),
    *(float("nan"), float("inf"), "", "x", "silu", "gelu", "é" * 50, "\x00", [], [1], {}),
    *({"rope_type": "yarn"}, {"rope_type": {"a": 1}}, {"type": "linear", "factor": 1e308}),
    {"rope_type": "yarn", "rope_theta": 1.0, "factor": 2.0, "original_max_position_embeddings": 9},
    {"rope_type": "llama3", "factor": 1e-300},
)
_FURTHER: Final = (
    *("rope_scaling", "rope_parameters", "sliding_window", "layer_types", "n_inner", "head_dim"),
    *("partial_rotary_factor", "type_vocab_size", "quantization_config", "model_type"),
)


def _models() -> tuple[Pretrained, ...]:
    rng = np.random.default_rng(0)
    sizes: dict[str, Any] = {"context": 6, "width": 4, "heads": 2, "blocks": 1, "rng": rng}
    qkv = ("q_proj", "k_proj", "v_proj")
    return (
        hg.GPT(7, **sizes),
        hg.Llama(7, **sizes, hidden=3, kv_heads=1, bias=True, attention_bias=True),
        hg.Llama(7, **sizes, hidden=3, tied=True, attention_bias=qkv),
        hg.Llama(7, **sizes, hidden=3, qk_norm=True, rotary_base=100.0),
        hg.Bert(7, **sizes, pooling="first"),
    )


MODELS: Final = _models()


def _pick(rng: np.random.Generator, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _damage_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        reach = min(len(found), int(_pick(rng, (9, 2000, 10**9))))
        found[int(rng.integers(reach))] = int(rng.integers(256))
    return bytes(found[: int(rng.integers(len(found)))] if rng.random() < 0.2 else found)


def _write(folder: Path, model: Pretrained, rng: np.random.Generator) -> None:
    """The folder of a model with one thing or a few that are not as they should be."""
    model.save_pretrained(folder)
    way = rng.random()
    if way < 0.6:
        config = json.loads((folder / CONFIG).read_text())
        for _ in range(int(rng.integers(1, 4))):
            config[_pick(rng, (*config, *_FURTHER))] = _pick(rng, _JUNK)
        (folder / CONFIG).write_text(json.dumps(config))
    elif way < 0.85:
        path = folder / _pick(rng, (WEIGHTS, WEIGHTS, CONFIG))
        path.write_bytes(_damage_bytes(path.read_bytes(), rng))
    else:
        (folder / WEIGHTS).rename(folder / "part.safetensors")
        names = [*"ab", "wte.weight", "transformer.wte.weight", "model.norm.weight"]
        parts = ("part.safetensors", "other", "../part.safetensors", "", 3, None)
        listed = {name: _pick(rng, parts) for name in names if rng.random() < 0.5}
        text = json.dumps({"weight_map": _pick(rng, (listed, listed, listed, *_JUNK))}).encode()
        damaged = _damage_bytes(text, rng) if rng.random() < 0.3 else text
        (folder / INDEX).write_bytes(damaged)


def draw(rng: np.random.Generator) -> Case:
    number, seed = int(rng.integers(len(MODELS))), int(rng.integers(2**31))

    def program() -> str:
        return (
            "import numpy as np\n\nfrom fuzz.hf_folders import run\n\n"
            f"run({number}, np.random.default_rng({seed}))\n"
        )

    return Case("from_pretrained", lambda: run(number, np.random.default_rng(seed)), program)


def run(number: int, rng: np.random.Generator) -> None:
    """Read the folder: a model that computes and can be written again, or one sentence."""
    model, home = MODELS[number], Path(scratch())
    try:
        _write(home / "folder", model, rng)
        found = type(model).from_pretrained(home / "folder")
        with np.errstate(all="ignore"):
            found.forward(np.zeros((1, 1), np.int64))
        found.save_pretrained(home / "again")
    except HandgradError as error:
        check_sentence(error)
    finally:
        rmtree(home)
