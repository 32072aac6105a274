"""The golden file of `transformers` as folders on the disk."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import handgrad as hg
from handgrad.io.hf.families import FAMILIES
from handgrad.models.pretrained import Pretrained
from tests.golden.make_pretrained import FILE, LAYOUTS, inputs


class Layout(NamedTuple):
    """A small model of transformers: what describes it, its arrays, and its outputs."""

    config: dict[str, Any]
    arrays: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the constructor with which the model gives the hidden states that are kept."""
        return {"pooling": "none"} if any("pooler" in key for key in self.arrays) else {}

    @property
    def kind(self) -> type[Pretrained]:
        """The class of ours that reads it."""
        kind = self.config["model_type"]
        name = next(name for name, each in FAMILIES.items() if kind in each.model_types)
        found: type[Pretrained] = getattr(hg, name)
        return found


@cache
def layout(name: str) -> Layout:
    with np.load(FILE) as golden:
        said = json.loads(str(golden[f"{name}/said"]))
        values = golden[f"{name}/values"].astype(np.float32)
        arrays, begin = {}, 0
        for key, shape in said["shapes"].items():
            end = begin + math.prod(shape)
            arrays[key], begin = values[begin:end].reshape(shape), end
        outputs = {
            key: golden[f"{name}/{key}"] for key in ("y", "pooled") if f"{name}/{key}" in golden
        }
    return Layout(said["config"], arrays, outputs)


def as_bf16(array: np.ndarray) -> np.ndarray:
    """The upper 16 bits of every float32."""
    return (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)


_IN_HEADER = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64"}


def write_safetensors(path: Path, arrays: dict[str, np.ndarray], dtype: str = "float32") -> None:
    """The file that transformers writes of these arrays, byte by byte: NumPy has no bfloat16."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, array in arrays.items():
        kept = as_bf16(array) if dtype == "bfloat16" else array.astype(dtype)
        offsets = [len(content), len(content) + kept.nbytes]
        header[name] = {
            "dtype": _IN_HEADER[dtype],
            "shape": list(array.shape),
            "data_offsets": offsets,
        }
        content += kept.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


def write_folder(
    folder: Path, found: Layout, *, dtype: str = "float32", parts: int = 1, **config: Any
) -> Path:
    """A folder with the model of a layout, in so many files; `config` replaces entries."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**found.config, **config}))
    if parts == 1:
        write_safetensors(folder / "model.safetensors", found.arrays, dtype)
        return folder
    weight_map = {}
    for i in range(parts):
        part = f"model-{i + 1:05}-of-{parts:05}.safetensors"
        names = [name for n, name in enumerate(found.arrays) if n % parts == i]
        write_safetensors(folder / part, {name: found.arrays[name] for name in names}, dtype)
        weight_map.update(dict.fromkeys(names, part))
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def outputs_of(model: Pretrained) -> np.ndarray:
    """y for the tokens of the golden file; hidden states are 0 behind the end of a text."""
    given = inputs()
    if not isinstance(model, hg.Bert):
        return np.asarray(model.forward(given["tokens"])[0])
    y, _ = model.forward(given["tokens"], given["types"], lengths=given["lengths"])
    there = np.arange(given["tokens"].shape[1]) < given["lengths"][:, None]
    return np.where(there[:, :, None], y, 0.0) if y.ndim == 3 else np.asarray(y)


__all__ = ["LAYOUTS", "Layout", "layout", "outputs_of", "write_folder", "write_safetensors"]
