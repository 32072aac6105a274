"""Tables in CSV: one example a row, numbers and one target; `.csv.gz` and `.tsv` too.

Cells are divided by commas, semicolons or tabs, whichever gives the first row the most; beside
semicolons a comma is the decimal point of a number, as spreadsheets write it in half of Europe. A
column without a name, in which data frames keep their index, is left out. So are lines above the
table that begin with #, unless the last of them is its header, as `numpy.savetxt` writes it. Where
a column holds more than numbers, all of them are read by a plan: see `data.encoding`.

The target is the column that is asked for by its name; else the one named `label`, `class`,
`target` or `y`; without such a header the last. Texts are classes, and so are whole numbers where
there are few different ones; other numbers are to be predicted as numbers.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Generic

import numpy as np

from handgrad.arrays import Array
from handgrad.data.arrays import class_indices
from handgrad.data.blocks import CellColumns, Kept, NoNumberError, NumberBlocks
from handgrad.data.cells import DECIMALS, number_of, numbers_of
from handgrad.data.dataset import TEST_FRACTION, Dataset, Pixels, split_indices
from handgrad.data.encoding import TableEncoding, date_pattern, is_running, table_encoding
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
    kinds: Mapping[str, str] | TableEncoding = MappingProxyType({}),
    vectors: bool = False,
) -> Dataset:
    """The table in a CSV file: x (N, D) float32, and y (N,) of classes, or of numbers in float32.

    target: the name of its column; numbers: whether it holds numbers to predict, not classes; by
    default the targets say it. maximum: the number that becomes 1 in x. drop: the names of columns
    to leave out, whatever is in them; kinds: what others are read as, "number", "category" or
    "date", or a plan that was made before. Where a column holds more than numbers, or `kinds` are
    given, all columns are read by a plan, which is in `encoding` of the data set; `vectors` as in
    `table_encoding`.
    Raises DataError naming a wrong row, or the columns where there is none of the target's name.
    """
    if not kinds:
        blocks = NumberBlocks(path, may_drop=maximum is not None)
        try:
            table = _read(path, blocks, target, drop)
        except NoNumberError:
            if maximum is not None or not blocks.columns:
                raise
        else:
            y, classes = table.targets(numbers)
            train, test = split_indices(y, TEST_FRACTION, seed)
            x = [
                each if maximum is None else Pixels(each, maximum)
                for each in table.kept.divided(test)
            ]
            return Dataset(
                name,
                *(x[0], y[train]),
                *(x[1], y[test]),
                tuple(classes),
                columns=tuple(table.kept.columns),
                drawn=True,
                origins=table.origins(train, test),
            )
    cells = _read(path, CellColumns(path), target, drop)
    return _by_plan(name, path, seed, numbers, cells, kinds, vectors=vectors)


def _by_plan(
    name: str,
    path: Path,
    seed: int,
    numbers: bool | None,
    table: _Table[CellColumns],
    kinds: Mapping[str, str] | TableEncoding,
    *,
    vectors: bool,
) -> Dataset:
    """The data set of a table whose columns hold more than numbers."""
    if not table.kept.columns:
        raise DataError(
            f"{path} has texts or empty cells and no header; expected a first row with the names "
            "of the columns"
        )
    y, classes = table.targets(numbers)
    train, test = split_indices(y, TEST_FRACTION, seed)
    try:
        if isinstance(kinds, TableEncoding):
            plan = kinds
        else:
            cells = table.kept.rows(train)
            plan = table_encoding(table.kept.columns, cells, kinds, vectors=vectors)
        cells = table.kept.named(plan.sources)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    table.check(4 * len(y) * len(plan.names))
    x_train, x_test = (
        plan.encoded([[column[i] for i in part.tolist()] for column in cells])
        for part in (train, test)
    )
    return Dataset(
        name,
        *(x_train, y[train]),
        *(x_test, y[test]),
        tuple(classes),
        columns=plan.sources,
        drawn=True,
        encoding=plan,
        origins=table.origins(train, test),
    )


def _read(path: Path, kept: Kept, target: str | None, drop: Sequence[str]) -> _Table[Kept]:
    """The table in a file, `kept` in this form."""
    table = _Table(path, kept, target, drop)
    for number, row, bound in rows_of(path):
        table.add(number, row, bound)
    table.close()
    return table


class _Table(Generic[Kept]):
    """What is kept of a table as it is read, and its targets."""

    def __init__(self, path: Path, kept: Kept, target: str | None, drop: Sequence[str]) -> None:
        self._path = path
        self.kept: Kept = kept
        self._bound = Bound(path, 0)
        self._target = target
        self._drop = drop
        self._width = 0
        self._unnamed = 0
        self._column = 0
        self._name = ""
        self._is_usual = False
        self._chosen: list[int] = []
        self._known: dict[str, int] = {}
        self._first_row: dict[str, int] = {}
        self._targets: list[int] = []
        self._rows = array("q")

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
        more = 56  # the row, an index, its sorting and both parts of it
        if label not in self._known:
            self._known[label] = len(self._known)
            self._first_row[label] = number
            more += 400 + 4 * len(label)
        self._targets.append(self._known[label])
        self._rows.append(number)
        self._bound = bound
        self.kept.take(number, [row[i] for i in self._chosen], bound, more)

    def check(self, more: int) -> None:
        """Raise DataError where so many bytes more are too many for a file of this size."""
        self._bound.check(more)

    def _begin(self, row: list[str]) -> None:
        if len(row) < 2:
            raise self._no_table()
        self._width = len(row)
        self._column = self._width - 1
        self._chosen = list(range(self._column))

    def _read_header(self, header: list[str]) -> None:
        names = [cell.strip() for cell in header]
        lower = [name.lower() for name in names]
        self._unnamed = unnamed(names)
        self._column = max(0, len(names) - 1 - self._unnamed)
        wanted = TARGET_COLUMNS if self._target is None else (self._target.lower(),)
        for label in wanted:
            if label in lower:
                self._column = lower.index(label)
                self._is_usual = True
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
        self._name = names[self._column]
        left_out = ("", *self._drop)
        self._chosen = [
            i for i, name in enumerate(names) if name not in left_out and i != self._column
        ]
        self.kept.columns = [names[i] for i in self._chosen]
        twice = next((name for i, name in enumerate(names) if name and name in names[:i]), None)
        if twice is None and lower.count(lower[self._column]) > 1:
            twice = names[self._column]
        if twice is not None:
            raise DataError(
                f"{self._path}: its header has {cut(twice)} twice; expected a name of its own "
                "for each column"
            )
        if not self._chosen:
            raise DataError(
                f"{self._path} has no column with a name beside the target "
                f"{quoted(names[self._column])}; expected one or more"
            )

    def close(self) -> None:
        """The last block. Raises DataError where there is no row."""
        if not self._width:
            raise self._no_table()
        self.kept.convert()
        if not len(self.kept):
            raise DataError(f"{self._path} has a header and no rows; expected one example a row")

    def origins(self, train: Array, test: Array) -> dict[str, Array]:
        """The rows of the file that the parts are from."""
        rows = np.array(self._rows)
        return {"train": rows[train], "test": rows[test]}

    def _no_table(self) -> DataError:
        return DataError(
            f"{self._path} has no table; expected rows of numbers and a target, divided by commas, "
            "semicolons or tabs"
        )

    def targets(self, numbers: bool | None) -> tuple[Array, list[str]]:
        """The target of each row: indices of classes with their names, or numbers without."""
        known = list(self._known)
        if numbers is None:
            self._check_obvious(known)
            numbers = self._are_numbers(known)
            self._check_classes(known, numbers)
        if numbers:
            values = _target_numbers(known)
            wrong = next((k for k, value in zip(known, values, strict=True) if value is None), None)
            if wrong is not None:
                raise DataError(
                    f"{self._path}: row {self._first_row[wrong]} has the target {quoted(wrong)}; "
                    "expected numbers, or classes in all rows"
                )
            return np.array(values, np.float32)[self._targets], []
        if all(map(_INDEX.fullmatch, known)):
            numbered = np.array([int(label) for label in known])
            (classes,), names = class_indices(self._path, [numbered], None)
        else:  # not as an array, where each would be as long as the longest
            names = sorted(known)
            order = {label: i for i, label in enumerate(names)}
            classes = np.array([order[label] for label in known])
        return classes.astype(np.int64)[self._targets], names

    def _check_obvious(self, known: Sequence[str]) -> None:
        """Raise DataError for a target that nobody named and that is a date or numbers the rows."""
        if self._target is not None or not self.kept.columns or self._is_usual:
            return
        is_date = date_pattern(known)[1] == len(known) and not all(map(is_number, known))
        if is_date or (len(known) == len(self._targets) and is_running(numbers_of(known, "."))):
            found = "dates" if is_date else "a running number"
            raise DataError(
                f"{self._path}: the last column, {quoted(self._name)}, holds {found} and would be "
                f"the target; expected target, the name of the column to predict: one of "
                f"{listed(self.kept.columns)}"
            )

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
        numeric = [value for value in _target_numbers(known) if value is not None]
        if 2 * len(numeric) <= len(known):
            return False
        return not all(map(float.is_integer, numeric)) or len(known) > MOST_CLASSES


def _target_numbers(known: Sequence[str]) -> list[float | None]:
    """The numbers of targets as people write them, None for a target that is none."""
    if all(map(is_number, known)):
        return list(map(float, known))
    ways = [[number_of(label, decimal) for label in known] for decimal in DECIMALS]
    return min(ways, key=lambda values: values.count(None))
