"""Data sets in one file: NumPy's .npz, and CSV tables.

.npz    arrays x_train, y_train, x_test, y_test; or x and y, of which a stratified fifth becomes
        the test part. Unsigned bytes are read as pixels (255 becomes 1), others as they are.
        Images are (N, H, W) or (N, C, H, W), tables (N, D). `classes` (strings) is optional.
.csv    one example a row, numbers and one label; `.csv.gz` too. The label is the column named
        `label`, `class`, `target` or `y`; without such a header it is the last column.

For both, `maximum` is the number that becomes 1, when it is given.
"""

from __future__ import annotations

import csv
import gzip
import zipfile
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset, Pixels, split_dataset
from handgrad.errors import DataError

LABEL_COLUMNS: Final = ("label", "class", "target", "y")


def load_npz(name: str, path: Path, seed: int = 0, maximum: float | None = None) -> Dataset:
    """The data set in a .npz file. Raises DataError for missing arrays, pickles and damage."""
    arrays = read_npz(path)
    divided = "x_train" in arrays
    for key in ("x_train", "y_train", "x_test", "y_test") if divided else ("x", "y"):
        if key not in arrays:
            raise DataError(
                f"{path} has the arrays {', '.join(arrays) or '(none)'}; "
                "expected x_train, y_train, x_test and y_test, or x and y"
            )
    parts = ("_train", "_test") if divided else ("",)
    labels, classes = _labels(path, [arrays[f"y{part}"] for part in parts], arrays.get("classes"))
    examples = [_examples(path, f"x{part}", arrays[f"x{part}"], maximum) for part in parts]
    if not divided:
        return split_dataset(name, examples[0], labels[0], classes, seed)
    return Dataset(name, examples[0], labels[0], examples[1], labels[1], tuple(classes))


def read_npz(path: Path) -> dict[str, Array]:
    """Every array of a .npz file, none of them pickled. Raises DataError where it is none."""
    try:
        # Opened here, because np.load leaves a damaged file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except FileNotFoundError:
        raise DataError(f"{path} is missing; expected a .npz file") from None
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error):
        raise DataError(
            f"{path} cannot be read; expected a whole .npz file of numbers, without pickles"
        ) from None


def _examples(path: Path, key: str, x: Array, maximum: float | None) -> Array | Pixels:
    if x.dtype.kind not in "fiub" or x.ndim not in (2, 3, 4):
        raise DataError(
            f"{path}: {key} has shape {x.shape} and type {x.dtype}; "
            "expected numbers of shape (N, D), (N, H, W) or (N, C, H, W)"
        )
    if x.ndim == 3:
        x = x[:, None]
    if maximum is None and x.dtype != np.uint8:
        return np.asarray(x, dtype=np.float32)
    return Pixels(x, 255.0 if maximum is None else maximum)


def _labels(path: Path, found: list[Array], names: Array | None) -> tuple[list[Array], list[str]]:
    """Class indices of each part, and the classes' names: given, or the labels themselves."""
    for labels in found:
        if labels.ndim != 1 or labels.dtype.kind not in "iuU":
            raise DataError(
                f"{path}: labels have shape {labels.shape} and type {labels.dtype}; "
                "expected class indices or names of shape (N,)"
            )
    if names is not None and found[0].dtype.kind in "iu":
        return [labels.astype(np.int64) for labels in found], [str(name) for name in names]
    values = np.unique(np.concatenate(found))
    if values.dtype.kind in "iu" and len(values) and values[0] >= 0 and values[-1] < 10_000:
        # A class without an example keeps its index.
        values = np.arange(values[-1] + 1)
    return [np.searchsorted(values, labels) for labels in found], [str(value) for value in values]


def load_csv(name: str, path: Path, seed: int = 0, maximum: float | None = None) -> Dataset:
    """The table in a CSV file: x (N, D) float32, y (N,). Raises DataError naming a wrong row."""
    rows = _rows(path)
    header = None if _is_number(rows[0][0]) and _is_number(rows[0][-2]) else rows[0]
    first = 1 if header is None else 2
    body = rows if header is None else rows[1:]
    width = len(rows[0])
    column = width - 1
    if header is not None:
        names = [cell.strip().lower() for cell in header]
        column = next((names.index(label) for label in LABEL_COLUMNS if label in names), column)
    for number, row in enumerate(body, first):
        if len(row) != width:
            raise DataError(f"{path}: row {number} has {len(row)} columns; expected {width}")
    labels = [row.pop(column).strip() for row in body]
    try:
        x = np.array(body, dtype=np.float32).reshape(len(body), width - 1)
    except ValueError:
        number, cell = next(
            (n, cell) for n, row in enumerate(body, first) for cell in row if not _is_number(cell)
        )
        raise DataError(
            f"{path}: row {number} has {cell!r}; expected a number in every column but the label"
        ) from None
    if not body:
        raise DataError(f"{path} has a header and no rows; expected one example a row")
    numbered = all(label.isdigit() for label in labels)
    y, classes = _labels(path, [np.array([int(v) for v in labels] if numbered else labels)], None)
    examples = x if maximum is None else Pixels(x, maximum)
    return split_dataset(name, examples, y[0], classes, seed)


def _rows(path: Path) -> list[list[str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except FileNotFoundError:
        raise DataError(f"{path} is missing; expected a CSV file") from None
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error}); expected CSV in UTF-8") from None
    if not rows or len(rows[0]) < 2:
        raise DataError(f"{path} has no table; expected rows of numbers and a label, with commas")
    return rows


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
