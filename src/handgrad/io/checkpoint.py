"""Checkpoints: one safetensors file that holds a whole training state, replaced atomically.

Arrays are tensors of the file; everything else (counters, sums, the states of random generators)
is one JSON text in its metadata, and so is a checksum of the file. Because it is one file, written
under another name, synced and renamed over the old one, a process killed at any moment leaves the
old checkpoint or the new one, whole, never a mixture.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import shortened
from handgrad.dispatch.values import shown
from handgrad.errors import RunError
from handgrad.io.checksums import (
    BLANK,
    read_checksum,
    read_whole,
    with_checksum,
)
from handgrad.layers.base import Layer
from handgrad.writing import reason, write_atomically

#: Written into every checkpoint; a reader refuses another one instead of misreading it.
FORMAT = 4

#: Stands before the checksum in a header; inside the strings of the metadata quotes are escaped.
_MARKER: Final = b'"sha256":"'
#: Bytes at the start of the file that say how long the header is.
_PREFIX: Final = 8


def to_json(what: str, value: Any, *, indent: int | None = None) -> str:
    """JSON of `value`. Raises RunError where it holds what JSON has no form for, such as NaN."""
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RunError(f"{what}: {error}; allowed: what JSON holds") from None


def finite(value: Any) -> Any:
    """The same with None in the place of every number that is not finite."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def changed(path: Path, written: str, found: str) -> RunError:
    """The error for a file whose checksum does not fit what is in it."""
    if not written:
        return RunError(
            f"{path} is damaged or of another version of handgrad: it has no checksum; expected "
            f"the file of a run whose checkpoints have format {FORMAT}"
        )
    return RunError(
        f"{path} is damaged or was changed: its SHA-256 is {found[:12]}...; expected "
        f"{written[:12]}..., as when the run wrote it"
    )


def read_file(path: Path, *, follow: bool = False) -> bytes:
    """The bytes of a file of a run, through a link only if `follow`.

    Raises RunError where the system does not give them.
    """
    try:
        return read_whole(path, follow=follow)
    except OSError as error:
        raise RunError(f"{path} cannot be read: {reason(error)}") from None


def save_arrays(
    path: Path,
    arrays: Mapping[str, Array],
    metadata: Mapping[str, str] | None = None,
    write: Callable[..., None] = write_atomically,
) -> None:
    """Write named arrays as a safetensors file with a checksum; `write` puts bytes at a path."""
    from safetensors.numpy import save

    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = save(contiguous, metadata={**(metadata or {}), "sha256": BLANK.decode()})
    write(path, *with_checksum(content, _MARKER, _header_end(content)))


def _header_end(content: bytes) -> int:
    return _PREFIX + int.from_bytes(content[:_PREFIX], "little")


def load_arrays(path: Path, *, follow: bool = False) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the metadata of a file that `save_arrays` wrote.

    Raises RunError where it is none, or where a byte of it has changed since.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    content = read_file(path, follow=follow)
    try:
        arrays = load(content)
        end = _header_end(content)
        metadata: dict[str, str] = json.loads(content[_PREFIX:end]).get("__metadata__", {})
    except (SafetensorError, KeyError, ValueError) as error:
        raise RunError(f"{path}: not a readable safetensors file ({shortened(error)})") from None
    written, found = read_checksum(content, _MARKER, end)
    if written != found:
        raise changed(path, written, found)
    return dict(sorted(arrays.items())), metadata


def save_checkpoint(
    path: Path, arrays: Mapping[str, Array], state: Mapping[str, Any], run: str = ""
) -> None:
    """Write a checkpoint: arrays as tensors, `state` (anything JSON holds) in the metadata.

    run: the run that it belongs to.
    """
    path.parent.mkdir(exist_ok=True)
    text = to_json(f"{path}: the state to save", {"format": FORMAT, **state})
    save_arrays(path, arrays, {"state": text, "run": run})


def load_checkpoint(path: Path, run: str = "") -> tuple[dict[str, Array], dict[str, Any]] | None:
    """The content that `save_checkpoint` wrote; None where there is no checkpoint yet.

    Raises RunError for a damaged one, or one of another version or another run.
    """
    if not os.path.lexists(path):
        return None
    arrays, metadata = load_arrays(path)
    check_run(path, metadata, run)
    state: Any = json.loads(metadata.get("state", "{}"))
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else state
        raise RunError(
            f"{path}: checkpoint format is {shown(found)}; allowed: {FORMAT}, "
            f"written by this version of handgrad"
        )
    return arrays, state


def check_run(path: Path, metadata: Mapping[str, str], run: str) -> None:
    """Raise RunError where a file was written by another run."""
    if metadata.get("run") != run:
        raise RunError(
            f"{path} belongs to another run; expected the file that the run of this folder wrote"
        )


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
    """Put a generator back where `generator_state` found it.

    Raises RunError for another kind, or a state that this kind does not have.
    """
    found = generator.bit_generator.state["bit_generator"]
    if found != state.get("bit_generator"):
        raise RunError(
            f"checkpoint: the random generator is a {found}; allowed: "
            f"{state.get('bit_generator')}, as when it was saved"
        )
    try:
        generator.bit_generator.state = dict(state)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RunError(
            f"checkpoint: the state of a {found} is damaged ({error}); expected its own"
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value
