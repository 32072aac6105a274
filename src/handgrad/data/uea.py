"""Time series with classes, in the `.ts` files of the UEA and UCR archive.

    @problemName JapaneseVowels        a header, of which the class labels are needed
    @classLabel true 1 2 3
    @data
    1.86,1.89,1.93:-0.20,-0.19,-0.23:2 one series a line: its channels, and its class

A set is two files, NAME_TRAIN.ts and NAME_TEST.ts; series may differ in length. Lines that start
with # or % are comments.

Source: Bagnall et al., The UEA multivariate time series classification archive, 2018 (2018).
"""

from __future__ import annotations

import math
import os
import re
import warnings
from array import array
from pathlib import Path
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset
from handgrad.data.files import entries, read_lines
from handgrad.data.ragged import Sequences
from handgrad.errors import DataError
from handgrad.escaping import cut, listed, quoted

_PARTS: Final = ("_TRAIN.ts", "_TEST.ts")
_MISSING: Final = ("?", "nan", "")
#: Characters in one line; the longest series of the archive have some four million.
_LONGEST_SERIES: Final = 2**24


def is_ts(path: Path) -> bool:
    """Return whether it is such a file, or a folder with a training part in it."""
    return bool(_problems(path)) if os.path.isdir(path) else path.suffix == ".ts"


def load(path: Path, problem: str | None = None) -> Dataset:
    """x `Sequences` (N, T, C) float32, y (N,), the parts as the archive divides them.

    path: a folder or one of its two files. In a folder with several sets, it is the one called
    `problem`, or else called as the folder.
    Raises DataError where a file is missing, or naming the line that is wrong.
    """
    name = _problem(path, problem)
    folder = path if os.path.isdir(path) else path.parent
    x_train, y_train, classes = read_ts(folder / f"{name}{_PARTS[0]}")
    x_test, y_test, test_classes = read_ts(folder / f"{name}{_PARTS[1]}")
    if classes != test_classes:
        raise DataError(
            f"{folder / name}{_PARTS[1]} has the classes {listed(test_classes)}; "
            f"expected {listed(classes)}, as the training part has"
        )
    return Dataset(name, x_train, y_train, x_test, y_test, classes)


def _problems(folder: Path) -> list[str]:
    names = (path.name for path in entries(folder))
    return [name.removesuffix(_PARTS[0]) for name in names if name.endswith(_PARTS[0])]


def _problem(path: Path, problem: str | None) -> str:
    if not os.path.isdir(path):
        part = next((part for part in _PARTS if path.name.endswith(part)), None)
        if part is None:
            raise DataError(
                f"{path} is one file of a set; expected a name that ends in {' or '.join(_PARTS)}"
            )
        return path.name.removesuffix(part)
    problems = _problems(path)
    wanted = [name for name in (problem, path.name) if name in problems]
    if not wanted and len(problems) != 1:
        raise DataError(
            f"{path} holds {listed(problems) if problems else 'no .ts files'}; expected one "
            "set, or the path of one of its files"
        )
    return [*wanted, *problems][0]


def read_ts(path: Path) -> tuple[Sequences, Array, tuple[str, ...]]:
    """The series of one file, their class indices, and the classes in the header's order.

    Raises DataError with the line that cannot be read.
    """
    with warnings.catch_warnings():
        # With this warning NumPy ends before the end of a row.
        warnings.simplefilter("error", DeprecationWarning)
        return _read(path)


def _read(path: Path) -> tuple[Sequences, Array, tuple[str, ...]]:
    header: list[str] = []
    classes: tuple[str, ...] = ()
    order: dict[str, int] = {}
    channels = None
    # Plain numbers, because an array for each of many short series would take more than they do.
    values, labels, lengths = array("f"), array("i"), array("q")
    held = 0
    # Comments are in any encoding; what is not ASCII in the data is no number in any of them.
    lines = read_lines(path, "a .ts file", longest=_LONGEST_SERIES, errors="replace")
    for number, text, bound in lines:
        line = text.strip()
        if not line or line[0] in "#%":
            continue
        if line.startswith("@") and not lengths:
            header.append(line)
            held += 100 + 4 * len(line)
            bound.check(held)
            continue
        if not lengths:
            classes, channels = _header(path, header)
            order = {label: i for i, label in enumerate(classes)}
        *rows, label = line.split(":")
        if label.strip() not in order:
            raise DataError(
                f"{path}: line {number:,} has the class {quoted(label.strip())}; "
                f"expected {listed(classes)}"
            )
        if len(rows) != (channels or len(rows)) or not rows:
            raise DataError(
                f"{path}: line {number:,} has {len(rows)} channels; expected {channels or 1}"
            )
        channels = len(rows)
        series = _values(path, number, rows)
        labels.append(order[label.strip()])
        lengths.append(len(series))
        values.frombytes(series.tobytes())
        # Grown by a ninth at most; a length is kept twice more, a label once.
        held += 5 * series.size + 40
        bound.check(held)
    if not lengths:
        if not classes:
            _header(path, header)
        raise DataError(f"{path} has no series; expected one in each line below @data")
    steps = np.frombuffer(values, np.float32).reshape(-1, channels or 1)
    sequences = Sequences(steps, np.frombuffer(lengths, np.int64))
    return sequences, np.array(labels, dtype=np.int64), classes


def _header(path: Path, header: list[str]) -> tuple[tuple[str, ...], int | None]:
    """The classes, and the number of channels where it is given."""
    fields = {}
    for line in header:
        key, _, value = line[1:].partition(" ")
        if key.lower() in fields:
            raise DataError(f"{path} has the line @{cut(key)} twice; expected it once")
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
    if len(set(classes)) < len(classes):
        raise DataError(f"{path} has a class label twice; expected each class once")
    channels = "1" if fields.get("univariate", "").lower() == "true" else fields.get("dimensions")
    if channels is not None and not re.fullmatch(r"[1-9][0-9]{0,8}", channels):
        raise DataError(f"{path} has the dimensions {quoted(channels)}; expected how many channels")
    return tuple(classes), int(channels) if channels else None


def _values(path: Path, number: int, rows: list[str]) -> Array:
    """One series (T, C) float32."""
    lengths = [row.count(",") + 1 for row in rows]
    for channel, length in enumerate(lengths, 1):
        if length != lengths[0]:
            raise DataError(
                f"{path}: line {number:,} has {length} values in channel {channel}; "
                f"expected {lengths[0]}, as in channel 1"
            )
    values = np.empty((lengths[0], len(rows)), np.float32)
    for channel, row in enumerate(rows):
        values[:, channel] = _numbers(row, lengths[0])
        if not np.isfinite(values[:, channel]).all():
            step, cell = _first_wrong(row)
            found = "a missing value" if cell.lower() in _MISSING else quoted(cell)
            raise DataError(
                f"{path}: line {number:,} has {found} (channel {channel + 1}, step {step + 1}); "
                "expected a finite number at every step"
            )
    return values


def _numbers(row: str, count: int) -> Array | float:
    """The numbers between commas, parsed without a string for each; NaN where one is none."""
    try:
        found = np.fromstring(row, np.float32, sep=",")
    except (ValueError, DeprecationWarning):
        return math.nan
    return found if len(found) == count else math.nan


def _first_wrong(row: str) -> tuple[int, str]:
    """The step and the text of the first cell that is no finite number, or else the whole row."""
    for step, cell in enumerate(row.split(",")):
        if not np.isfinite(_numbers(cell, 1)).all():
            return step, cell.strip()
    return 0, row.strip()
