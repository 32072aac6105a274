"""IDX files, the form MNIST and Fashion-MNIST are published in, as they are or as .gz.

    bytes 0-1   zero
    byte  2     type of a value: 08 is an unsigned byte, the only one image sets use
    byte  3     number of axes
    then        the length of each axis, 4 bytes, most significant first
    then        the values, last axis fastest

Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database", section "File formats".
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset, Pixels
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
    """Whether any of the four files is there; `load` says which are missing."""
    return any((folder / name).is_file() for file in FILES.values() for name in _spellings(file))


def load(name: str, folder: Path) -> Dataset:
    """The set in `folder`: x (N, 1, H, W) from 0 to 1, y (N,), ten classes.

    Raises DataError where a file is missing, truncated or of another kind.
    """
    values = {}
    for part, file in FILES.items():
        found = next((folder / s for s in _spellings(file) if (folder / s).is_file()), None)
        if found is None:
            raise DataError(f"{folder / file} is missing; expected this file or {file}.gz")
        values[part] = read_idx(found, axes=3 if part.startswith("x") else 1)
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

    Raises DataError where the file is of another kind, or longer or shorter than its header says.
    """
    content = _content(path)
    magic = bytes((0, 0, 8, axes))
    if content[:4] != magic:
        raise DataError(
            f"{path} starts with the bytes {content[:4].hex(' ') or 'of an empty file'}; expected "
            f"{magic.hex(' ')}, an IDX file of unsigned bytes with {axes} "
            f"{'axis' if axes == 1 else 'axes'}"
        )
    header = 4 + 4 * axes
    if len(content) < header:
        raise DataError(f"{path} has {len(content)} bytes; expected a header of {header}")
    shape = tuple(int(length) for length in np.frombuffer(content, ">u4", axes, offset=4))
    expected = header + math.prod(shape)
    if len(content) != expected:
        raise DataError(
            f"{path} has {len(content):,} bytes; expected {expected:,}, because its header says "
            f"{' × '.join(map(str, shape))} values"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _content(path: Path) -> bytes:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}); expected IDX in .gz") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; expected an IDX file") from None
