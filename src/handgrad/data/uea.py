"""Time series with classes, in the `.ts` files of the UEA and UCR archive.

    @problemName JapaneseVowels        a header, of which the class labels are needed
    @classLabel true 1 2 3
    @data
    1.86,1.89,1.93:-0.20,-0.19,-0.23:2 one series a line: its channels, and its class

A set is two files, NAME_TRAIN.ts and NAME_TEST.ts; series may differ in length. Lines that start
with # or % are comments.

Source: A. Bagnall et al., "The UEA multivariate time series classification archive", 2018.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset
from handgrad.data.files import read_bytes
from handgrad.data.ragged import Sequences
from handgrad.errors import DataError

_PARTS: Final = ("_TRAIN.ts", "_TEST.ts")
_MISSING: Final = ("?", "nan", "")


def is_ts(place: Path) -> bool:
    """Whether it is such a file, or a folder with a training part in it."""
    return bool(_problems(place)) if place.is_dir() else place.suffix == ".ts"


def load(place: Path, problem: str | None = None) -> Dataset:
    """x `Sequences` (N, T, C) float32, y (N,), the parts as the archive divides them.

    place: a folder or one of its two files. In a folder with several sets, it is the one called
    `problem`, or else called as the folder.
    Raises DataError where a file is missing, or naming the line that is wrong.
    """
    name = _problem(place, problem)
    folder = place if place.is_dir() else place.parent
    x_train, y_train, classes = read_ts(folder / f"{name}{_PARTS[0]}")
    x_test, y_test, test_classes = read_ts(folder / f"{name}{_PARTS[1]}")
    if classes != test_classes:
        raise DataError(
            f"{folder / name}{_PARTS[1]} has the classes {', '.join(test_classes)}; "
            f"expected {', '.join(classes)}, as the training part has"
        )
    return Dataset(name, x_train, y_train, x_test, y_test, classes)


def _problems(folder: Path) -> list[str]:
    return sorted(path.name.removesuffix(_PARTS[0]) for path in folder.glob(f"*{_PARTS[0]}"))


def _problem(place: Path, problem: str | None) -> str:
    if not place.is_dir():
        part = next((part for part in _PARTS if place.name.endswith(part)), None)
        if part is None:
            raise DataError(
                f"{place} is one file of a set; expected a name that ends in {' or '.join(_PARTS)}"
            )
        return place.name.removesuffix(part)
    problems = _problems(place)
    wanted = [name for name in (problem, place.name) if name in problems]
    if not wanted and len(problems) != 1:
        raise DataError(
            f"{place} holds {', '.join(problems) or 'no .ts files'}; expected one set, or the path "
            "of one of its files"
        )
    return [*wanted, *problems][0]


def read_ts(path: Path) -> tuple[Sequences, Array, tuple[str, ...]]:
    """The series of one file, their class indices, and the classes in the header's order.

    Raises DataError with the line that cannot be read.
    """
    # Comments are in any encoding; what is not ASCII in the data is no number in any of them.
    text = read_bytes(path, "a .ts file").decode("utf-8", errors="replace")
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1)]
    lines = [(n, line) for n, line in lines if line and line[0] not in "#%"]
    header = [line for _, line in lines if line.startswith("@")]
    classes, channels = _header(path, header)
    labels = []
    series = []
    for number, line in lines[len(header) :]:
        *rows, label = line.split(":")
        if label.strip() not in classes:
            raise DataError(
                f"{path}: line {number:,} has the class {label.strip()[:40]!r}; "
                f"expected {', '.join(classes)}"
            )
        if len(rows) != (channels or len(rows)) or not rows:
            raise DataError(
                f"{path}: line {number:,} has {len(rows)} channels; expected {channels or 1}"
            )
        channels = len(rows)
        labels.append(classes.index(label.strip()))
        series.append(_values(path, number, rows))
    if not series:
        raise DataError(f"{path} has no series; expected one in each line below @data")
    return Sequences.of(series), np.array(labels, dtype=np.int64), classes


def _header(path: Path, header: list[str]) -> tuple[tuple[str, ...], int | None]:
    """The classes, and the number of channels where it is given."""
    fields = {}
    for line in header:
        key, _, value = line[1:].partition(" ")
        fields[key.lower()] = value.strip()
    if "data" not in fields:
        raise DataError(f"{path} has no line @data; expected a .ts file with a header")
    if fields.get("timestamps", "false").lower() == "true":
        raise DataError(f"{path} has time stamps; expected series of values alone")
    given, *classes = fields.get("classlabel", "false").split()
    if given.lower() != "true" or not classes:
        raise DataError(
            f"{path} has no class labels; expected a line such as @classLabel true 1 2 3"
        )
    channels = fields.get("dimensions", "")
    if fields.get("univariate", "").lower() == "true":
        channels = "1"
    return tuple(classes), int(channels) if channels.isdigit() else None


def _values(path: Path, number: int, rows: list[str]) -> Array:
    """One series (T, C) float32."""
    cells = [row.strip().split(",") for row in rows]
    lengths = [len(row) for row in cells]
    for channel, length in enumerate(lengths, 1):
        if length != lengths[0]:
            raise DataError(
                f"{path}: line {number:,} has {length} values in channel {channel}; "
                f"expected {lengths[0]}, as in channel 1"
            )
    try:
        values = np.array(cells, dtype=np.float32).T
    except ValueError:
        values = np.full((lengths[0], len(cells)), np.nan, np.float32)
    if not np.isfinite(values).all():
        channel, step = _first_wrong(cells)
        cell = cells[channel][step].strip()
        found = "a missing value" if cell.lower() in _MISSING else repr(cell)
        raise DataError(
            f"{path}: line {number:,} has {found} (channel {channel + 1}, step {step + 1}); "
            "expected a finite number at every step"
        )
    return np.ascontiguousarray(values)


def _first_wrong(cells: list[list[str]]) -> tuple[int, int]:
    """The channel and step of the first cell that is no finite number."""
    for channel, row in enumerate(cells):
        for step, cell in enumerate(row):
            try:
                finite = np.isfinite(np.float32(cell))
            except ValueError:
                finite = False
            if not finite:
                return channel, step
    raise AssertionError("every cell is a finite number")
