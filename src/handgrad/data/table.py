"""Tables in CSV: one example a row, numbers and one target; `.csv.gz` and `.tsv` too.

Cells are divided by commas, semicolons or tabs, whichever gives the first row the most; beside
semicolons a comma is the decimal point of a number, as spreadsheets write it in half of Europe. A
column without a name, in which data frames keep their index, is left out. So are lines above the
table that begin with #, unless the last of them is its header, as `numpy.savetxt` writes it.

The target is the column that is asked for by its name; else the one named `label`, `class`,
`target` or `y`; without such a header the last. Texts are classes, and so are whole numbers where
there are few different ones; other numbers are to be predicted as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.arrays import class_indices
from handgrad.data.dataset import TEST_FRACTION, Dataset, Pixels, split_indices
from handgrad.data.files import Bound
from handgrad.data.rows import is_number, rows_of, unnamed, width_of
from handgrad.errors import DataError
from handgrad.escaping import cut, listed, quoted

TARGET_COLUMNS: Final = ("label", "class", "target", "y")
#: So many different whole numbers are classes; of more, the target is a number.
MOST_CLASSES: Final = 20
#: Ends of the names of files that hold a table.
SUFFIXES: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
#: Targets that are class indices; `str.isdigit` is true of ² as well.
_INDEX: Final = re.compile(r"[0-9]{1,18}")
#: Numbers of a table that become an array at a time.
_BLOCK: Final = 2**16


def is_table(name: str) -> bool:
    """Return whether the name of a file is that of a table."""
    return name.lower().endswith(SUFFIXES)


def load_csv(
    name: str,
    path: Path,
    seed: int = 0,
    maximum: float | None = None,
    *,
    target: str | None = None,
    numbers: bool | None = None,
    drop: Sequence[str] = (),
) -> Dataset:
    """The table in a CSV file: x (N, D) float32, and y (N,) of classes, or of numbers in float32.

    target: the name of its column; numbers: whether it holds numbers to predict, not classes; by
    default the targets say it. maximum: the number that becomes 1 in x. drop: the names of columns
    to leave out, whatever is in them.
    Raises DataError naming a wrong row, or the columns where there is none of the target's name.
    """
    table = _Table(path, target, drop)
    for number, row, bound in rows_of(path):
        table.add(number, row, bound)
    table.close()
    y, classes = table.targets(numbers)
    train, test = split_indices(y, TEST_FRACTION, seed)
    # The blocks are given up as they are divided, so that the numbers are in memory once.
    x_train, x_test = table.divided(test)
    x = [each if maximum is None else Pixels(each, maximum) for each in (x_train, x_test)]
    return Dataset(
        name,
        *(x[0], y[train]),
        *(x[1], y[test]),
        tuple(classes),
        columns=tuple(table.columns),
        drawn=True,
    )


def read_rows(path: Path, count: int, columns: Sequence[str] = ()) -> Array:
    """The examples in a CSV file without targets, (N, count) float32.

    columns: the names that the training data had. A file with a header has to have these, in any
    order, and may have others; one without has exactly `count`.
    Raises DataError naming a wrong row, or a column that is missing.
    """
    reader = _Examples(path, count, columns)
    for number, row, bound in rows_of(path):
        reader.add(number, row, bound)
    return reader.close()


class _Blocks:
    """The numbers of a table as they are read, in blocks of float32."""

    def __init__(self, path: Path, *, may_drop: bool = False) -> None:
        self.path = path
        self.may_drop = may_drop
        self.columns: list[str] = []
        self._rows: list[list[str]] = []
        self._first = 0
        self._held = 0
        self.blocks: list[Array] = []

    def take(self, number: int, cells: list[str], bound: Bound, more: int) -> None:
        """Add one row; more: bytes that are held for it beside its numbers."""
        if not self._rows:
            self._first = number
        self._rows.append(cells)
        self._held += 4 * len(cells) + more
        if len(self._rows) * (len(cells) + 1) >= _BLOCK:
            bound.check(self._held, "unpack it first, or " if self.path.suffix == ".gz" else "")
            self.convert()

    def convert(self) -> None:
        """Make a block of the rows. Raises DataError naming a cell that is no number."""
        if not self._rows:
            return
        try:
            with np.errstate(over="ignore"):
                block = np.array(self._rows, dtype=np.float32)
        except ValueError:
            block = np.full((1, 1), np.nan, np.float32)
        if not np.isfinite(block).all():
            wrong = [
                (number, i, cell)
                for number, row in enumerate(self._rows, self._first)
                for i, cell in enumerate(row)
                if not is_number(cell)
            ]
            number, i, cell = wrong[0]
            where = f" in column {quoted(self.columns[i])}" if self.columns else ""
            ways = self._ways({i for _, i, _ in wrong})
            raise DataError(
                f"{self.path}: row {number} has {quoted(cell)}{where}; expected a number that "
                f"float32 holds in every column but the target{ways}"
            )
        self.blocks.append(block.reshape(len(self._rows), -1))
        self._rows = []

    def _ways(self, wrong: set[int]) -> str:
        """The end of a sentence on columns with other cells: these can be left out by name."""
        if not (self.columns and self.may_drop):
            return ""
        names = [self.columns[i] for i in sorted(wrong)]
        return f"; to leave out the columns with others: drop={cut(str(names), 200)}"


class _Table:
    """The numbers of a table as they are read, and its targets."""

    def __init__(self, path: Path, target: str | None, drop: Sequence[str]) -> None:
        self._path = path
        self._target = target
        self._drop = drop
        self._numbers = _Blocks(path, may_drop=True)
        self._width = 0
        self._unnamed = 0
        self._column = 0
        self._kept: list[int] = []
        self._known: dict[str, int] = {}
        self._first_row: dict[str, int] = {}
        self._targets: list[int] = []

    @property
    def columns(self) -> list[str]:
        """The names of the columns of x; none where the file has no header."""
        return self._numbers.columns

    def add(self, number: int, row: list[str], bound: Bound) -> None:
        if not self._width:
            self._begin(row)
            if not (is_number(row[0]) and is_number(row[-2])):
                self._read_header(row)
                return
            named = next(iter(self._drop), None) if self._target is None else self._target
            if named is not None:
                raise DataError(
                    f"{self._path} has no header; expected one with the column {quoted(named)}"
                )
        self._width, self._unnamed = width_of(row, self._width, self._unnamed), 0
        if len(row) != self._width:
            raise DataError(
                f"{self._path}: row {number} has {len(row)} columns; expected {self._width}"
            )
        label = row[self._column].strip()
        if not label:
            raise DataError(f"{self._path}: row {number} has no target; expected one in each row")
        more = 40  # an index, its sorting and both parts of it
        if label not in self._known:
            self._known[label] = len(self._known)
            self._first_row[label] = number
            more += 400 + 4 * len(label)
        self._targets.append(self._known[label])
        self._numbers.take(number, [row[i] for i in self._kept], bound, more)

    def _begin(self, row: list[str]) -> None:
        if len(row) < 2:
            raise self._no_table()
        self._width = len(row)
        self._column = self._width - 1
        self._kept = list(range(self._column))

    def _read_header(self, header: list[str]) -> None:
        names = [cell.strip() for cell in header]
        lower = [name.lower() for name in names]
        self._unnamed = unnamed(names)
        self._column = max(0, len(names) - 1 - self._unnamed)
        wanted = TARGET_COLUMNS if self._target is None else (self._target.lower(),)
        for label in wanted:
            if label in lower:
                self._column = lower.index(label)
                break
        else:
            if self._target is not None:
                raise DataError(
                    f"{self._path} has no column {quoted(self._target)}; expected one of "
                    f"{listed(names)}"
                )
        for name in self._drop:
            if name not in names or names.index(name) == self._column:
                raise DataError(
                    f"{self._path} has no column {quoted(name)} to drop beside the target; "
                    f"expected one of {listed(names)}"
                )
        left_out = ("", *self._drop)
        self._kept = [
            i for i, name in enumerate(names) if name not in left_out and i != self._column
        ]
        self._numbers.columns = [names[i] for i in self._kept]
        twice = next((name for i, name in enumerate(names) if name and name in names[:i]), None)
        if twice is None and lower.count(lower[self._column]) > 1:
            twice = names[self._column]
        if twice is not None:
            raise DataError(
                f"{self._path}: its header has {cut(twice)} twice; expected a name of its own "
                "for each column"
            )
        if not self._kept:
            raise DataError(
                f"{self._path} has no column with a name beside the target "
                f"{quoted(names[self._column])}; expected one or more"
            )

    def close(self) -> None:
        """The last block. Raises DataError where there is no row."""
        if not self._width:
            raise self._no_table()
        self._numbers.convert()
        if not self._numbers.blocks:
            raise DataError(f"{self._path} has a header and no rows; expected one example a row")

    def _no_table(self) -> DataError:
        return DataError(
            f"{self._path} has no table; expected rows of numbers and a target, divided by commas, "
            "semicolons or tabs"
        )

    def targets(self, numbers: bool | None) -> tuple[Array, list[str]]:
        """The target of each row: indices of classes with their names, or numbers without."""
        known = list(self._known)
        if numbers is None:
            numbers = self._are_numbers(known)
            self._check_classes(known, numbers)
        if numbers:
            wrong = next((label for label in known if not is_number(label)), None)
            if wrong is not None:
                raise DataError(
                    f"{self._path}: row {self._first_row[wrong]} has the target {quoted(wrong)}; "
                    "expected numbers, or classes in all rows"
                )
            return np.array([float(label) for label in known], np.float32)[self._targets], []
        if all(map(_INDEX.fullmatch, known)):
            values = np.array([int(label) for label in known])
            (classes,), names = class_indices(self._path, [values], None)
        else:  # not as an array, where each would be as long as the longest
            names = sorted(known)
            order = {label: i for i, label in enumerate(names)}
            classes = np.array([order[label] for label in known])
        return classes.astype(np.int64)[self._targets], names

    def _check_classes(self, known: Sequence[str], numbers: bool) -> None:
        """Raise DataError for targets that teach nothing, or leave no row to test with."""
        if len(known) == 1:
            raise DataError(
                f"{self._path} has the target {quoted(known[0])} in every row; expected two "
                "different ones or more"
            )
        if not numbers and len(known) == len(self._targets):
            raise DataError(
                f"{self._path} has {len(known)} rows of {len(known)} classes, which leaves none to "
                "test with; expected two rows of a class or more"
            )

    def _are_numbers(self, known: Sequence[str]) -> bool:
        """Numbers where most targets are, unless they are few different whole ones."""
        numeric = [label for label in known if is_number(label)]
        if 2 * len(numeric) <= len(known):
            return False
        whole = all(float(label).is_integer() for label in numeric)
        return not whole or len(known) > MOST_CLASSES

    def divided(self, test: Array) -> tuple[Array, Array]:
        """The rows that are not among `test`, and those that are."""
        blocks = self._numbers.blocks
        total = sum(map(len, blocks))
        chosen = np.zeros(total, dtype=bool)
        chosen[test] = True
        parts = [
            np.empty((count, len(self._kept)), np.float32)
            for count in (total - len(test), len(test))
        ]
        ends = [total - len(test), len(test)]
        while blocks:
            block = blocks.pop()
            total -= len(block)
            own = chosen[total : total + len(block)]
            for i, rows in enumerate((block[~own], block[own])):
                parts[i][ends[i] - len(rows) : ends[i]] = rows
                ends[i] -= len(rows)
        return parts[0], parts[1]


class _Examples:
    """Rows without a target, their columns in the order of the training data."""

    def __init__(self, path: Path, count: int, columns: Sequence[str]) -> None:
        self._path = path
        self._columns = list(columns)
        self._numbers = _Blocks(path)
        self._width = 0
        self._unnamed = 0
        self._chosen = list(range(count))

    def add(self, number: int, row: list[str], bound: Bound) -> None:
        if not self._width:
            self._width = len(row)
            if not all(map(is_number, row)) and self._read_header(row):
                return
            if len(row) != len(self._chosen):
                raise DataError(
                    f"{self._path}: row {number} has {len(row)} columns; expected "
                    f"{len(self._chosen)}, as many as the model learned from"
                )
        self._width, self._unnamed = width_of(row, self._width, self._unnamed), 0
        if len(row) != self._width:
            raise DataError(
                f"{self._path}: row {number} has {len(row)} columns; expected {self._width}"
            )
        self._numbers.take(number, [row[i] for i in self._chosen], bound, 0)

    def _read_header(self, header: list[str]) -> bool:
        """Find the columns; False where the row is no header but one with a wrong cell."""
        names = [cell.strip() for cell in header]
        if not self._columns:
            is_header = not any(map(is_number, header)) and len(header) == len(self._chosen)
            self._numbers.columns = names if is_header else []
            return is_header
        if any(map(is_number, names)) and not set(names) & set(self._columns):
            return False
        for column in self._columns:
            if column not in names:
                raise DataError(
                    f"{self._path} has no column {quoted(column)}; expected {listed(self._columns)}"
                )
            if names.count(column) > 1:
                raise DataError(
                    f"{self._path}: its header has {column} twice; expected a name of its own for "
                    "each column"
                )
        self._unnamed = unnamed(names)
        self._chosen = [names.index(column) for column in self._columns]
        self._numbers.columns = self._columns
        return True

    def close(self) -> Array:
        self._numbers.convert()
        if not self._numbers.blocks:
            raise DataError(f"{self._path} has no rows; expected one example a row")
        return np.concatenate(self._numbers.blocks)
