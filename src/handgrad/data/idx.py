"""IDX files, the form MNIST and Fashion-MNIST are published in, as they are or as .gz.

    bytes 0-1   zero
    byte  2     type of a value: 08 is an unsigned byte, the only one image sets use
    byte  3     number of axes
    then        the length of each axis, 4 bytes, most significant first
    then        the values, last axis fastest

Source: LeCun, Cortes, Burges, The MNIST database of handwritten digits (undated), file formats.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset, Pixels
from handgrad.data.files import opened, read_raw
from handgrad.errors import DataError

#: The four files of a set, by part; `t10k` is what the publishers call the test part.
FILES: Final = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
DIGITS: Final = tuple(str(digit) for digit in range(10))
CLOTHES: Final = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def _spellings(name: str) -> list[str]:
    """The names a file goes by: `train-images-idx3-ubyte`, `train-images.idx3-ubyte`, and .gz."""
    dotted = name.replace("-idx", ".idx")
    return [name, dotted, f"{name}.gz", f"{dotted}.gz"]


def is_idx_folder(folder: Path) -> bool:
    """Return whether any of the four files is there; `load` says which are missing."""
    return any(
        os.path.isfile(folder / name) for file in FILES.values() for name in _spellings(file)
    )


def load(name: str, folder: Path) -> Dataset:
    """The set in `folder`: x (N, 1, H, W) from 0 to 1, y (N,), ten classes.

    Raises DataError where a file is missing, truncated or of another kind.
    """
    values = {}
    for part, file in FILES.items():
        found = next((folder / s for s in _spellings(file) if os.path.lexists(folder / s)), None)
        if found is None:
            raise DataError(f"{folder / file} is missing; expected this file or {file}.gz")
        values[part] = read_idx(found, axes=3 if part.startswith("x") else 1)
        if 0 in values[part].shape[1:]:
            raise DataError(f"{found} has images of no pixels; expected some")
    return Dataset(
        name,
        Pixels(values["x_train"][:, None]),
        values["y_train"].astype(np.int64),
        Pixels(values["x_test"][:, None]),
        values["y_test"].astype(np.int64),
        CLOTHES if "fashion" in name else DIGITS,
    )


def read_idx(path: Path, axes: int) -> Array:
    """The unsigned bytes of one IDX file with the given number of axes.

    Raises DataError where the file is of another kind, longer or shorter than its header says, or
    packed and more than the bound of its memory.
    """
    with opened(path, "an IDX file") as (file, bound):
        header = file.read(4 + 4 * axes)
        magic = bytes((0, 0, 8, axes))
        if header[:4] != magic:
            raise DataError(
                f"{path} starts with the bytes {header[:4].hex(' ') or 'of an empty file'}; "
                f"expected {magic.hex(' ')}, an IDX file of unsigned bytes with {axes} "
                f"{'axis' if axes == 1 else 'axes'}"
            )
        if len(header) < 4 + 4 * axes:
            raise DataError(f"{path} has {len(header)} bytes; expected a header of {4 + 4 * axes}")
        shape = tuple(int(length) for length in np.frombuffer(header, ">u4", axes, offset=4))
        count = math.prod(shape)
        packed = path.suffix == ".gz"
        if packed:
            # Labels become class indices of 8 bytes.
            bound.check(count if axes > 1 else 9 * count, "unpack it first, or ")
            values = read_raw(file, count)
            # One byte more, and with it the end of the file and its checksum.
            found = len(header) + len(values) + len(file.read(1))
        else:
            found = bound.size
        if found != len(header) + count:
            more = "or more " if packed and found > len(header) + count else ""
            raise DataError(
                f"{path} has {found:,} {more}bytes; expected {len(header) + count:,}, because its "
                f"header says {' × '.join(map(str, shape))} values"
            )
        return (values if packed else read_raw(file, count)).reshape(shape)
