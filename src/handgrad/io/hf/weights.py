"""The arrays of a folder: one safetensors file, or the parts that an index lists."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import opened, read_json, read_raw, shortened
from handgrad.errors import DataError
from handgrad.escaping import cut, quoted
from handgrad.writing import write_file

WEIGHTS: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"

_EXPECTED: Final = "a safetensors file"
#: Bytes that say how long the header is.
_PREFIX: Final = 8
#: The types that hold numbers of floats, by their names in a header, and how their bytes are read.
_READ_AS: Final = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True)
class Stored:
    """An array in a file, which is read when it is asked for."""

    path: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int

    def read(self) -> Array:
        """The values as float32; float64 as they are.

        Raises DataError for another type, and where the file has changed.
        """
        if self.dtype not in _READ_AS:
            raise DataError(
                f"{self.path}: {cut(self.name)} is of type {cut(self.dtype)}; expected one of "
                f"{', '.join(_READ_AS)}"
            )
        size = np.dtype(_READ_AS[self.dtype]).itemsize * math.prod(self.shape)
        with opened(self.path, _EXPECTED) as (file, _):
            file.seek(self.begin)
            content = read_raw(file, size)
        if len(content) != size:
            raise DataError(f"{self.path} was changed while it was read; expected {_EXPECTED}")
        values = content.view(_READ_AS[self.dtype]).reshape(self.shape)
        if self.dtype == "BF16":  # the upper half of a float32
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values if self.dtype == "F64" else values.astype(np.float32, copy=False)


def stored(folder: Path) -> dict[str, Stored]:
    """Every array of the folder by name, in one file or in several.

    Raises DataError where there is none, and for parts that are missing, damaged, or do not hold
    what the index says.
    """
    if os.path.exists(folder / WEIGHTS) or not os.path.exists(folder / INDEX):
        if not os.path.exists(folder / WEIGHTS):
            raise DataError(f"{folder} has no weights; expected {WEIGHTS} or {INDEX}")
        return {each.name: each for each in _arrays(folder / WEIGHTS)}
    found = {}
    for part, names in _parts(folder / INDEX).items():
        if not os.path.exists(folder / part):
            raise DataError(
                f"{folder / cut(part)} is missing; expected each file that {INDEX} lists"
            )
        inside = {each.name: each for each in _arrays(folder / part)}
        for name in names:
            if name not in inside:
                raise DataError(
                    f"{folder / part} has no {cut(name)}; expected the arrays that {INDEX} lists"
                )
            found[name] = inside[name]
    return found


def arrays_of(path: Path) -> dict[str, Array]:
    """The arrays of one file by name. Raises DataError where it is missing or damaged."""
    return {each.name: each.read() for each in _arrays(path)}


def write(folder: Path, arrays: Mapping[str, Array]) -> None:
    """Put float32 arrays into the one file of a folder. Raises OSError where that fails."""
    from safetensors.numpy import save

    contiguous = {name: np.asarray(array, np.float32, order="C") for name, array in arrays.items()}
    write_file(folder / WEIGHTS, save(contiguous, metadata={"format": "pt"}))


def _parts(index: Path) -> dict[str, list[str]]:
    """The files that an index lists, each with the names of its arrays."""
    what = "an index of safetensors files"
    value, _ = read_json(index, what)
    listed = value.get("weight_map") if isinstance(value, dict) else None
    if not isinstance(listed, dict):
        raise DataError(f"{index} has no weight_map; expected {what}")
    parts: dict[str, list[str]] = {}
    for name, part in listed.items():
        if not isinstance(part, str) or Path(part).name != part:
            raise DataError(
                f"{index}: {cut(name)} is in {quoted(part)}; expected a file of its folder"
            )
        parts.setdefault(part, []).append(name)
    return parts


def _arrays(path: Path) -> Iterator[Stored]:
    """The arrays of one file, whose header `safetensors` has checked against its length."""
    from safetensors import SafetensorError, safe_open

    with opened(path, _EXPECTED) as (file, _):
        try:
            with safe_open(path, framework="numpy"):
                pass
        except (SafetensorError, ValueError) as error:
            raise DataError(
                f"{path} is damaged ({shortened(error)}); expected {_EXPECTED}"
            ) from None
        length = int.from_bytes(file.read(_PREFIX), "little")
        header: dict[str, Any] = json.loads(file.read(length))
    for name, each in header.items():
        if name != "__metadata__":
            begin = _PREFIX + length + each["data_offsets"][0]
            yield Stored(path, name, each["dtype"], tuple(each["shape"]), begin)
