"""Data sets in one file: NumPy's .npz, and CSV tables.

.npz    arrays x_train, y_train, x_test, y_test; or x and y, of which a stratified fifth becomes
        the test part. Unsigned bytes are read as pixels (255 becomes 1), others as they are. Types
        narrower than float32 stay in memory as they are until a batch is gathered.
        Images are (N, H, W) or (N, C, H, W), tables (N, D). `classes` (strings) is optional.
.csv    one example a row, numbers and one label; `.csv.gz` too. The label is the column named
        `label`, `class`, `target` or `y`; without such a header it is the last column.

For both, `maximum` is the number that becomes 1, when it is given.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import (
    TEST_FRACTION,
    Dataset,
    Pixels,
    split_dataset,
    stratified_split,
)
from handgrad.data.files import Bound, read_lines, shortened
from handgrad.data.npy import Header, read_npz
from handgrad.errors import DataError

LABEL_COLUMNS: Final = ("label", "class", "target", "y")
_DIVIDED: Final = ("x_train", "y_train", "x_test", "y_test")
_WHOLE: Final = ("x", "y")
#: Labels that are class indices; `str.isdigit` is true of ² as well.
_INDEX: Final = re.compile(r"[0-9]{1,18}")
#: Numbers of a table that become an array at a time.
_BLOCK: Final = 2**16


def load_npz(name: str, path: Path, seed: int = 0, maximum: float | None = None) -> Dataset:
    """The data set in a .npz file. Raises DataError for missing arrays, pickles and damage."""

    def needs(key: str, header: Header) -> float:
        if not key.startswith("x"):
            return 3 * header.nbytes + 100 * header.count
        narrow = header.dtype.itemsize < 4 or maximum is not None
        kept = header.nbytes if narrow else 4 * header.count
        return header.nbytes + kept * (2 if key == "x" else 1)

    arrays, names = read_npz(path, (*_DIVIDED, *_WHOLE, "classes"), needs)
    divided = "x_train" in arrays
    for key in _DIVIDED if divided else _WHOLE:
        if key not in arrays:
            raise DataError(
                f"{path} has the arrays {', '.join(names) or '(none)'}; "
                "expected x_train, y_train, x_test and y_test, or x and y"
            )
    parts = ("_train", "_test") if divided else ("",)
    labels, classes = _labels(path, [arrays[f"y{part}"] for part in parts], arrays.get("classes"))
    examples = [_examples(path, f"x{part}", arrays.pop(f"x{part}"), maximum) for part in parts]
    if not divided:
        return split_dataset(name, examples.pop(), labels[0], classes, seed)
    if len({getattr(x, "maximum", 1.0) for x in examples}) > 1:
        raise DataError(
            f"{path}: of x_train and x_test one has unsigned bytes, which are divided by 255, and "
            "the other has not; expected the same type in both"
        )
    return Dataset(name, examples[0], labels[0], examples[1], labels[1], tuple(classes))


def _examples(path: Path, key: str, x: Array, maximum: float | None) -> Array | Pixels:
    if x.dtype.kind not in "fiub" or x.ndim not in (2, 3, 4) or 0 in x.shape[1:]:
        raise DataError(
            f"{path}: {key} has shape {x.shape} and type {x.dtype}; "
            "expected numbers of shape (N, D), (N, H, W) or (N, C, H, W)"
        )
    if x.ndim == 3:
        x = x[:, None]
    lazily = maximum is not None or x.dtype.itemsize < 4
    if not lazily:
        with np.errstate(over="ignore"):
            x = np.asarray(x, dtype=np.float32)
    if x.dtype.kind == "f":
        for i, example in enumerate(x):
            if not np.isfinite(example).all():
                raise DataError(
                    f"{path}: {key} has a number in example {i} that is not finite in float32; "
                    "expected finite numbers"
                )
    if maximum is None:
        maximum = 255.0 if x.dtype == np.uint8 else 1.0
    return Pixels(x, maximum) if lazily else x


def _labels(path: Path, found: list[Array], names: Array | None) -> tuple[list[Array], list[str]]:
    """Class indices of each part, and the classes' names: given, or the labels themselves."""
    for labels in found:
        kinds = {array.dtype.kind.replace("u", "i") for array in found}
        if labels.ndim != 1 or labels.dtype.kind not in "iuU" or len(kinds) > 1:
            raise DataError(
                f"{path}: labels have shape {labels.shape} and type {labels.dtype}; "
                "expected class indices or names of shape (N,), in both parts the same"
            )
        if labels.dtype.kind == "u" and labels.max(initial=0) > np.iinfo(np.int64).max:
            raise DataError(f"{path}: a label is {labels.max()}; expected class indices below 2⁶³")
    if names is not None and (names.ndim != 1 or names.dtype.kind not in "iuU"):
        raise DataError(
            f"{path}: classes have shape {names.shape} and type {names.dtype}; "
            "expected the name of each class, of shape (C,)"
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
    table = _Table(path)
    for number, row, bound in _rows(path):
        table.add(number, row, bound)
    table.close()
    y, classes = table.labels()
    train, test = stratified_split(y, TEST_FRACTION, seed)
    # The blocks are given up as they are divided, so that the numbers are in memory once.
    x_train, x_test = table.divided(test)
    if maximum is not None:
        return Dataset(
            name,
            Pixels(x_train, maximum),
            y[train],
            Pixels(x_test, maximum),
            y[test],
            tuple(classes),
        )
    return Dataset(name, x_train, y[train], x_test, y[test], tuple(classes))


class _Table:
    """The numbers of a table as they are read, in blocks of float32, and its labels."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._width = 0
        self._column = 0
        self._rows: list[list[str]] = []
        self._first = 0
        self._blocks: list[Array] = []
        self._known: dict[str, int] = {}
        self._labels: list[Array] = []
        self._pending: list[int] = []
        self._held = 0
        self._count = 0

    def add(self, number: int, row: list[str], bound: Bound) -> None:
        if not self._width:
            self._begin(row)
            if not (_is_number(row[0]) and _is_number(row[-2])):
                self._find_label(row)
                return
        if len(row) != self._width:
            raise DataError(
                f"{self._path}: row {number} has {len(row)} columns; expected {self._width}"
            )
        label = row.pop(self._column).strip()
        if not label:
            raise DataError(f"{self._path}: row {number} has no label; expected one in each row")
        if label not in self._known:
            self._known[label] = len(self._known)
            self._held += 400 + 4 * len(label)
        if not self._rows:
            self._first = number
        self._rows.append(row)
        self._pending.append(self._known[label])
        # An index, its sorting and both parts of it take less than 40 bytes for a row.
        self._held += 4 * (self._width - 1) + 40
        if len(self._rows) * self._width >= _BLOCK:
            bound.check(self._held, "unpack it first, or " if self._path.suffix == ".gz" else "")
            self._convert()

    def _begin(self, row: list[str]) -> None:
        if len(row) < 2:
            raise self._no_table()
        self._width = len(row)
        self._column = self._width - 1

    def _find_label(self, header: list[str]) -> None:
        names = [cell.strip().lower() for cell in header]
        for label in LABEL_COLUMNS:
            if label in names:
                self._column = names.index(label)
                if names.count(label) > 1:
                    raise DataError(
                        f"{self._path}: its header has {label} twice; expected one column of labels"
                    )
                return

    def close(self) -> None:
        """The last block. Raises DataError where there is no row."""
        if not self._width:
            raise self._no_table()
        if not self._rows and not self._blocks:
            raise DataError(f"{self._path} has a header and no rows; expected one example a row")
        self._convert()

    def _no_table(self) -> DataError:
        return DataError(
            f"{self._path} has no table; expected rows of numbers and a label, with commas"
        )

    def _convert(self) -> None:
        try:
            with np.errstate(over="ignore"):
                block = np.array(self._rows, dtype=np.float32)
        except ValueError:
            block = np.full((1, 1), np.nan, np.float32)
        if not np.isfinite(block).all():
            number, cell = next(
                (number, cell)
                for number, row in enumerate(self._rows, self._first)
                for cell in row
                if not _is_number(cell)
            )
            raise DataError(
                f"{self._path}: row {number} has {_cut(cell)}; expected a number that "
                "float32 holds in every column but the label"
            )
        if len(self._rows):
            self._blocks.append(block.reshape(len(self._rows), self._width - 1))
            self._labels.append(np.array(self._pending, dtype=np.int32))
        self._rows, self._pending = [], []

    def labels(self) -> tuple[Array, list[str]]:
        """The class of each row, and the names of the classes."""
        known = list(self._known)
        if all(map(_INDEX.fullmatch, known)):
            values = np.array([int(label) for label in known])
            (classes,), names = _labels(self._path, [values], None)
        else:  # not as an array, where each would be as long as the longest
            names = sorted(known)
            order = {label: i for i, label in enumerate(names)}
            classes = np.array([order[label] for label in known])
        return classes.astype(np.int64)[np.concatenate(self._labels)], names

    def divided(self, test: Array) -> tuple[Array, Array]:
        """The rows that are not among `test`, and those that are."""
        total = sum(map(len, self._blocks))
        chosen = np.zeros(total, dtype=bool)
        chosen[test] = True
        parts = [
            np.empty((count, self._width - 1), np.float32)
            for count in (total - len(test), len(test))
        ]
        ends = [total - len(test), len(test)]
        while self._blocks:
            block = self._blocks.pop()
            total -= len(block)
            own = chosen[total : total + len(block)]
            for i, rows in enumerate((block[~own], block[own])):
                parts[i][ends[i] - len(rows) : ends[i]] = rows
                ends[i] -= len(rows)
        return parts[0], parts[1]


def _rows(path: Path) -> Iterator[tuple[int, list[str], Bound]]:
    """The rows that are not empty, counted from 1."""
    bound = Bound(path, 0)

    def lines() -> Iterator[str]:
        nonlocal bound
        for number, line, bound in read_lines(path, "CSV in UTF-8", newline=""):  # noqa: B007
            if "\0" in line:
                raise DataError(f"{path}: line {number:,} has a zero byte; expected CSV in UTF-8")
            yield line

    number = 0
    try:
        for row in csv.reader(lines(), strict=True):
            if row:
                number += 1
                yield number, row, bound
    except csv.Error as error:
        raise DataError(
            f"{path} cannot be read behind row {number} ({shortened(error)}); expected CSV in UTF-8"
        ) from None


def _is_number(cell: str) -> bool:
    """Return whether it is a number that is finite in float32."""
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.float32(cell)))
    except ValueError:
        return False


def _cut(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else f"{cell[:37]}...")
