"""Adapters in the files of the package peft: adapter_model.safetensors and adapter_config.json.

An array of the layer `blocks.0.attention.inner.q_proj` is called as in the layout of Hugging Face
that the model has, `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`; a layer
without a counterpart there, as in a packed projection, keeps its own name.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import read_json
from handgrad.errors import ArgumentError, DataError, RunError
from handgrad.escaping import cut
from handgrad.io.hf.families import FAMILIES
from handgrad.io.hf.weights import arrays_of
from handgrad.layers.base import Layer, walk
from handgrad.layers.dense import Dense
from handgrad.layers.lora import LoRADense
from handgrad.models.adapting import adapt, adapted_layers, check_adapted, is_adapted, merge
from handgrad.paths import as_path

MODEL: Final = "adapter_model.safetensors"
CONFIG: Final = "adapter_config.json"
_PREFIX: Final = "base_model.model."
_EXPECTED: Final = "the adapter_config.json of a LoRA adapter"
#: Entries of a config that would need other arithmetic, and the values that do not.
_PLAIN: Final[Mapping[str, tuple[Any, ...]]] = {
    "peft_type": ("LORA",),
    "use_dora": (None, False),
    "use_rslora": (None, False),
    "fan_in_fan_out": (None, False),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "modules_to_save": (None, []),
    "layers_to_transform": (None, []),
}


def save(model: Layer, folder: str | os.PathLike[str], *, base: str = "") -> None:
    """Write the adapter of a model; `base` is the name of the model without it, for readers.

    Raises ArgumentError for a model that is not adapted, RunError where the folder cannot be
    written.
    """
    from safetensors.numpy import save as to_bytes

    from handgrad.io.checkpoint import to_json
    from handgrad.writing import reason, write_file

    check_adapted("lora.save", model)
    path, adaptation = as_path("lora.save", folder), vars(model)["adaptation"]
    names = _their_names(model)
    arrays = {name: np.asarray(array, order="C") for name, array in _arrays(model).items()}
    modules = {names[name] for name, _ in adapted_layers(model)}
    ends = {each.rpartition(".")[2] for each in modules}
    if {name for name, _ in adapted_layers(model)} == {*_named(model, ends)}:
        modules = ends
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "inference_mode": True,
        "r": adaptation.rank,
        "lora_alpha": adaptation.alpha,
        "lora_dropout": adaptation.dropout,
        "target_modules": sorted(modules),
        "bias": adaptation.bias,
        "fan_in_fan_out": False,
        "modules_to_save": None,
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_file(path / MODEL, to_bytes(arrays, metadata={"format": "pt"}))
        write_file(path / CONFIG, to_json("lora.save", config, indent=2).encode())
    except OSError as error:
        raise RunError(f"{path} cannot be written: {reason(error)}") from None


def load(model: Layer, folder: str | os.PathLike[str]) -> None:
    """Adapt a model as a folder's adapter says, and put its arrays into it; in place.

    Raises ArgumentError for a model that is adapted already, DataError for what is missing,
    damaged, another kind of adapter, or does not fit the model; then the model is not adapted.
    """
    path = as_path("lora.load", folder)
    if is_adapted(model):
        raise ArgumentError("lora.load: the model is adapted already; allowed: one that is not")
    config, _ = read_json(path / CONFIG, _EXPECTED)
    settings = _settings(model, path / CONFIG, config)
    stored = {name.removeprefix(_PREFIX): array for name, array in arrays_of(path / MODEL).items()}
    try:
        adapt(model, **settings)
    except ArgumentError as error:
        raise DataError(f"{path / CONFIG} does not fit the model: {error}") from None
    own = {name.removeprefix(_PREFIX): array for name, array in _arrays(model).items()}
    for name in dict.fromkeys((*own, *stored)):
        found = stored[name].shape if name in stored else "missing"
        expected = own[name].shape if name in own else "no such array"
        if found != expected:
            merge(model)
            raise DataError(f"{path / MODEL}: {cut(name)} is {found}; expected {expected}")
    for name, array in own.items():
        array[...] = stored[name]


def _settings(model: Layer, path: Path, config: Any) -> dict[str, Any]:
    """The arguments of `adapt` in a config of peft."""
    if not isinstance(config, dict):
        raise DataError(f"{path} is a {type(config).__name__}; expected {_EXPECTED}")
    for name, allowed in _PLAIN.items():
        if config.get(name) not in allowed:
            raise DataError(
                f"{path}: {name} is {cut(str(config.get(name)))}; expected {allowed[0]}"
            )
    kinds: dict[str, tuple[Any, ...]] = {
        "r": (int,),
        "lora_alpha": (int, float),
        "lora_dropout": (int, float),
        "bias": (str,),
        "target_modules": (list, str),
    }
    for name, kind in kinds.items():
        if not isinstance(config.get(name), kind) or isinstance(config[name], bool):
            raise DataError(
                f"{path}: {name} is {cut(str(config.get(name)))}; expected {kind[0].__name__}"
            )
    modules = config["target_modules"]
    modules = [modules] if isinstance(modules, str) else [str(each) for each in modules]
    return {
        "rank": config["r"],
        "alpha": config["lora_alpha"],
        "dropout": config["lora_dropout"],
        "bias": config["bias"],
        "targets": [our for each in modules for our in _named(model, {each}) or [each]],
    }


def _named(model: Layer, ends: Collection[str]) -> list[str]:
    """Our names of the linear maps whose names in the layout have one of these ends."""
    return [
        name
        for name, their in _their_names(model).items()
        if any(f".{their}".endswith(f".{end}") for end in ends)
    ]


def _their_names(model: Layer) -> dict[str, str]:
    """The linear maps' names in the layout of Hugging Face by ours; our own without one there."""
    found = {name: name for name, layer in walk(model) if isinstance(layer, Dense | LoRADense)}
    family = FAMILIES.get(type(model).__name__)
    if family is not None:
        blocks = len(model.blocks.blocks)  # type: ignore[attr-defined]
        for entry in family.names.all_entries(blocks):
            ours, _, kind = entry.ours[0].rpartition(".")
            alone = len(entry.ours) == len(entry.theirs) == 1 and not entry.transposed
            if ours in found and kind == "weight" and alone:
                found[ours] = family.names.in_file(entry.theirs[0]).rpartition(".")[0]
    return found


def _arrays(model: Layer) -> dict[str, Array]:
    """The trained arrays of an adapted model under the names of peft."""
    names, found = _their_names(model), {}
    adapted = dict(adapted_layers(model))
    for name, array in model.parameters.items():
        layer, _, own = name.rpartition(".")
        inner = f"{'base_layer.' if layer in adapted else ''}{own.replace('beta', 'bias')}"
        kind = {"lora_a": "lora_A.weight", "lora_b": "lora_B.weight"}.get(own, inner)
        found[f"{_PREFIX}{names.get(layer, layer)}.{kind}"] = array
    return found
