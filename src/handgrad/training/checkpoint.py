"""Checkpoints: one safetensors file that holds a whole training state, replaced atomically.

Arrays are tensors of the file; everything else (counters, sums, the states of random generators)
is one JSON text in its metadata. Because it is one file, written under another name, synced and
renamed over the old one, a process killed at any moment leaves the old checkpoint or the new one,
whole, never a mixture.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import RunError
from handgrad.layers.base import Layer

#: Written into every checkpoint; a reader refuses another one instead of misreading it.
FORMAT = 1


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` at `path`: temporary file beside it, sync, rename, sync of the folder."""
    temporary = path.with_name(f".{path.name}.partial")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` durable, where the system lets a folder be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def save_arrays(
    path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named arrays as a safetensors file, atomically."""
    from safetensors.numpy import save

    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_atomically(path, save(contiguous, metadata=dict(metadata or {})))


def load_arrays(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the metadata of a safetensors file. Raises RunError where it is not one."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return arrays, dict(file.metadata() or {})
    except (OSError, SafetensorError) as error:
        raise RunError(f"{path}: not a readable safetensors file ({error})") from None


def save_checkpoint(path: Path, arrays: Mapping[str, Array], state: Mapping[str, Any]) -> None:
    """Write a checkpoint: arrays as tensors, `state` (anything JSON holds) in the metadata."""
    path.parent.mkdir(exist_ok=True)
    save_arrays(path, arrays, {"state": json.dumps({"format": FORMAT, **state})})


def load_checkpoint(path: Path) -> tuple[dict[str, Array], dict[str, Any]] | None:
    """What `save_checkpoint` wrote; None where there is no checkpoint yet.

    Raises RunError for a damaged one, or one of another version.
    """
    if not path.exists():
        return None
    arrays, metadata = load_arrays(path)
    state: dict[str, Any] = json.loads(metadata.get("state", "{}"))
    if state.get("format") != FORMAT:
        raise RunError(
            f"{path}: checkpoint format is {state.get('format')!r}; allowed: {FORMAT}, "
            f"written by this version of handgrad"
        )
    return arrays, state


def load_model_arrays(model: Layer, arrays: Mapping[str, Array]) -> None:
    """Set a model's parameters and buffers from the arrays of a model.safetensors.

    Raises ArgumentError for one that is missing or unknown, ShapeError for another shape.
    """
    buffers = {name: array for name, array in arrays.items() if name in model.buffers}
    model.update_parameters({name: a for name, a in arrays.items() if name not in buffers})
    model.update_buffers(buffers)


def under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays whose names start with `prefix`, without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """The state of a NumPy generator as plain numbers and lists, ready for JSON."""
    state: dict[str, Any] = _plain(generator.bit_generator.state)
    return state


def restore_generator(generator: np.random.Generator, state: Mapping[str, Any]) -> None:
    """Put a generator back where `generator_state` found it. Raises RunError for another kind."""
    found = generator.bit_generator.state["bit_generator"]
    if found != state["bit_generator"]:
        raise RunError(
            f"checkpoint: the random generator is a {found}; allowed: {state['bit_generator']}, "
            f"as when it was saved"
        )
    generator.bit_generator.state = dict(state)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value
