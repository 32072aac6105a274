"""Tables in CSV: one example a row, numbers and one target; `.csv.gz` and `.tsv` too.

Cells are divided by commas, semicolons, tabs or |, whichever gives the first row the most; beside
semicolons a comma is the decimal point of a number, as spreadsheets write it in half of Europe. A
column without a name, in which data frames keep their index, is left out. So are lines above the
table that begin with #, unless the last of them is its header, as `numpy.savetxt` writes it. Where
a column holds more than numbers, or the number of the row, all of them are read by a plan: see
`data.encoding`.

The target is the column that is asked for by its name; else the one named `label`, `class`,
`target` or `y`; without such a header the last, unless that is a date, the number of the row, or a
text that differs in nearly each row. Texts are classes, and so are whole numbers where
there are few different ones; other numbers are to be predicted as numbers. Below a header a row
without a target is left out, and `note` of the data set says so.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Generic, Literal, NamedTuple, TypedDict, Unpack

import numpy as np

from handgrad.arrays import Array
from handgrad.data.arrays import class_indices
from handgrad.data.blocks import CellColumns, Kept, NoNumberError, NumberBlocks
from handgrad.data.cells import MISSING, numbers_of
from handgrad.data.dataset import TEST_FRACTION, Dataset, Pixels, split_indices
from handgrad.data.encoding import (
    LONG_ENOUGH,
    TableEncoding,
    date_pattern,
    is_row_number,
    table_encoding,
)
from handgrad.data.files import Bound
from handgrad.data.rows import is_number, numbers_in, rows_of, unnamed, width_of
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, DataError
from handgrad.escaping import cut, listed, quoted
from handgrad.keywords import with_defaults
from handgrad.spelling import setting
from handgrad.suggestions import did_you_mean

TARGET_COLUMNS: Final = ("label", "class", "target", "y")
#: So many different whole numbers are classes; of more, the target is a number.
MOST_CLASSES: Final = 20
#: Ends of the names of files that hold a table.
SUFFIXES: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
#: Targets below a header, in lower case, that say there is none; a sign may be the name of a class.
_NO_TARGET: Final = frozenset(text for text in MISSING if not text or any(map(str.isalpha, text)))
#: Targets that are class indices; `str.isdigit` is true of ² as well.
_INDEX: Final = re.compile(r"[0-9]{1,18}")


def is_table(name: str) -> bool:
    """Return whether the name of a file is that of a table."""
    return name.lower().endswith(SUFFIXES)


class TableSettings(TypedDict, total=False):
    """The settings of a table's columns.

    target: the name of the column to predict; numbers: whether it holds numbers, not classes, which
    the targets say otherwise. use: the columns to learn from, one name or several, if these are not
    all; drop: those to leave out, whatever is in them; kinds: what columns are read as, "number",
    "category" or "date", or a plan that was made before. vectors: as in `table_encoding`.
    """

    target: Annotated[str | None, None]
    numbers: Annotated[bool | None, None]
    use: Annotated[str | Sequence[str], ()]
    drop: Annotated[str | Sequence[str], ()]
    kinds: Annotated[Mapping[str, str] | TableEncoding, MappingProxyType({})]
    vectors: Annotated[bool, False]


def completed(name: str, given: TableSettings) -> TableSettings:
    """All settings, with several names where one is given. Raises ArgumentError for another one."""
    found = with_defaults(name, TableSettings, given)
    return {**found, "use": _names(name, "use", given), "drop": _names(name, "drop", given)}


def _names(name: str, key: Literal["use", "drop"], given: TableSettings) -> tuple[str, ...]:
    found = given.get(key, ())
    if isinstance(found, Iterable) and all(isinstance(each, str) for each in found):
        return (found,) if isinstance(found, str) else tuple(found)
    raise ArgumentError(f"{name}: {key} is {shown(found)}; allowed: names of columns")


def load_csv(
    name: str,
    path: Path,
    seed: int = 0,
    maximum: float | None = None,
    **settings: Unpack[TableSettings],
) -> Dataset:
    """The table in a CSV file: x (N, D) float32, and y (N,) of classes, or of numbers in float32.

    maximum: the number that becomes 1 in x. Where a column holds more than numbers, or that of the
    row unless it is in `use`, or `kinds` are given, all columns are read by a plan, which is in
    `encoding` of the data set.
    Raises DataError naming a wrong row, or the columns where there is none of the target's name.
    """
    chosen = completed(name, settings)
    numbers = chosen["numbers"]
    asked = _Asked(chosen["target"], chosen["use"], chosen["drop"], chosen["kinds"])
    if not asked.kinds:
        blocks = NumberBlocks(path, may_drop=maximum is not None)
        try:
            table = _read(path, blocks, asked)
        except NoNumberError:
            if maximum is not None or not blocks.columns:
                raise
        else:
            if asked.use or maximum is not None or not _has_row_numbers(blocks):
                return _of_numbers(name, seed, maximum, numbers, table)
    cells = _read(path, CellColumns(path), asked)
    return _by_plan(name, path, seed, numbers, cells, asked, vectors=chosen["vectors"])


def _has_row_numbers(blocks: NumberBlocks) -> bool:
    """Return whether a column beside others holds the number of the row."""
    names = blocks.columns
    return len(names) > 1 and any(is_row_number(n, blocks.column(i)) for i, n in enumerate(names))


def _of_numbers(
    name: str,
    seed: int,
    maximum: float | None,
    numbers: bool | None,
    table: _Table[NumberBlocks],
) -> Dataset:
    """The data set of a table of numbers alone."""
    y, classes = table.targets(numbers)
    train, test = split_indices(y, TEST_FRACTION, seed)
    x = [each if maximum is None else Pixels(each, maximum) for each in table.kept.divided(test)]
    return Dataset(
        name,
        *(x[0], y[train]),
        *(x[1], y[test]),
        tuple(classes),
        columns=tuple(table.kept.columns),
        target=table.target,
        note=table.note,
        drawn=True,
        origins=table.origins(train, test),
    )


def _by_plan(
    name: str,
    path: Path,
    seed: int,
    numbers: bool | None,
    table: _Table[CellColumns],
    asked: _Asked,
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
        if isinstance(asked.kinds, TableEncoding):
            plan = asked.kinds
        else:
            cells = table.kept.rows(train)
            plan = table_encoding(
                table.kept.columns, cells, asked.kinds, used=asked.use, vectors=vectors
            )
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
        target=table.target,
        note=table.note,
        drawn=True,
        encoding=plan,
        origins=table.origins(train, test),
    )


class _Asked(NamedTuple):
    """The settings that the columns of a table are read by: see `load_csv`."""

    target: str | None
    use: Sequence[str]
    drop: Sequence[str]
    kinds: Mapping[str, str] | TableEncoding

    @property
    def named(self) -> str | None:
        """A column that is named, where one is; the plan of a model is asked elsewhere."""
        kinds = () if isinstance(self.kinds, TableEncoding) else self.kinds
        return next(iter((*filter(None, (self.target,)), *self.use, *self.drop, *kinds)), None)

    def check(self, path: Path, names: Sequence[str], target: str) -> None:
        """Raise DataError for a name that is no column beside the target."""
        others = [(name, "use") for name in self.use if name != target]
        others += [(name, "drop") for name in self.drop]
        if not isinstance(self.kinds, TableEncoding):
            others += [(name, f"read as {kind}") for name, kind in self.kinds.items()]
        allowed = [name for name in names if name and name != target]
        for name, what in others:
            if name not in allowed:
                raise DataError(
                    f"{path} has no column {quoted(name)} to {what} beside the target; expected "
                    f"one of {listed(allowed)}{did_you_mean(name, allowed)}"
                )
        unused = [name for name, what in others if self.use and name not in self.use]
        if unused:
            raise DataError(
                f"{path}: column {quoted(unused[0])} is not among those to use; expected one of "
                f"{listed(self.use)}"
            )

    def chooses(self, name: str) -> bool:
        """Return whether a column of this name, not the target, is learned from."""
        return bool(name) and name not in self.drop and (not self.use or name in self.use)


def _read(path: Path, kept: Kept, asked: _Asked) -> _Table[Kept]:
    """The table in a file, `kept` in this form."""
    table = _Table(path, kept, asked)
    for number, row, bound in rows_of(path):
        table.add(number, row, bound)
    table.close()
    return table


class _Table(Generic[Kept]):
    """What is kept of a table as it is read, and its targets."""

    def __init__(self, path: Path, kept: Kept, asked: _Asked) -> None:
        self._path = path
        self.kept: Kept = kept
        self._bound = Bound(path, 0)
        self._asked = asked
        self._width = 0
        self._unnamed = 0
        self._column = 0
        self.target = ""
        self._is_usual = False
        self._chosen: list[int] = []
        self._known: dict[str, int] = {}
        self._first_row: dict[str, int] = {}
        self._targets: list[int] = []
        self._rows = array("q")
        self._without = array("q")

    def add(self, number: int, row: list[str], bound: Bound) -> None:
        if not self._width:
            self._begin(row)
            others = row if self._asked.target else row[:-1]  # the last may be a class of that name
            is_named = self._asked.named in [cell.strip() for cell in others]
            if is_named or not (is_number(row[0]) and is_number(row[-2])):
                self._read_header(row)
                return
            if self._asked.named is not None:
                raise DataError(
                    f"{self._path} has no header; expected one with the column "
                    f"{quoted(self._asked.named)}"
                )
        self._width, self._unnamed = width_of(row, self._width, self._unnamed), 0
        if len(row) != self._width:
            raise DataError(
                f"{self._path}: row {number} has {len(row)} columns; expected {self._width}"
            )
        label = row[self._column].strip()
        if not label and not self.kept.columns:
            raise DataError(f"{self._path}: row {number} has no target; expected one in each row")
        if self.kept.columns and label.lower() in _NO_TARGET:
            self._without.append(number)
            return
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
            raise self._no_table(f" in its first row, {quoted(row[0])}")
        self._width = len(row)
        self._column = self._width - 1
        self._chosen = list(range(self._column))

    def _read_header(self, header: list[str]) -> None:
        names = [cell.strip() for cell in header]
        lower = [name.lower() for name in names]
        self._unnamed = unnamed(names)
        self._column = max(0, len(names) - 1 - self._unnamed)
        target = self._asked.target
        wanted = TARGET_COLUMNS if target is None else (target.strip().lower(),)
        for label in wanted:
            if label in lower:
                self._column = lower.index(label)
                self._is_usual = True
                break
        else:
            if target is not None:
                raise DataError(
                    f"{self._path} has no column {quoted(target)}; expected one of "
                    f"{listed(names)}{did_you_mean(target, filter(None, names))}"
                )
        self.target = names[self._column]
        self._asked.check(self._path, names, self.target)
        self._chosen = [
            i for i, name in enumerate(names) if self._asked.chooses(name) and i != self._column
        ]
        if use := self._asked.use:  # in this order, which is that of a model's own table
            self._chosen.sort(key=lambda i: use.index(names[i]))
        self.kept.columns = [names[i] for i in self._chosen]
        twice = next(
            (name for i, name in enumerate(self.kept.columns) if name in self.kept.columns[:i]),
            None,
        )
        if twice is None and lower.count(lower[self._column]) > 1:
            twice = names[self._column]
        if twice is not None:
            raise DataError(
                f"{self._path}: its header has {cut(twice)} twice; expected a name of its own "
                f"for each column that is not left out by {setting('drop')}"
            )
        if not self._chosen:
            first = "the names of the columns in the first row, and no title above them"
            is_less = self._asked.use or self._asked.drop
            others = "one or more that are not dropped" if is_less else first
            raise DataError(
                f"{self._path} has no column with a name beside the target "
                f"{quoted(self.target)}; expected {others}"
            )

    def close(self) -> None:
        """The last block. Raises DataError where there is no row."""
        if not self._width:
            raise self._no_table("")
        self.kept.convert()
        if not len(self.kept) and self._without:
            raise DataError(
                f"{self._path} has no value of the target {quoted(self.target)} in any row; "
                "expected one in most rows"
            )
        if not len(self.kept):
            raise DataError(f"{self._path} has a header and no rows; expected one example a row")

    @property
    def note(self) -> str:
        """A remark on rows that are left out."""
        count = len(self._without)
        if not count:
            return ""
        said = f"{count:,} rows without a target are" if count > 1 else "a row without a target is"
        return f"{said} left out, {'the first of them ' * (count > 1)}row {self._without[0]}"

    def origins(self, train: Array, test: Array) -> dict[str, Array]:
        """The rows of the file that the parts are from."""
        return {part: np.array(self._rows)[i] for part, i in (("train", train), ("test", test))}

    def _no_table(self, where: str) -> DataError:
        return DataError(
            f"{self._path} has no table{where}; expected rows of numbers and a target, divided by "
            "commas, semicolons or tabs"
        )

    def targets(self, numbers: bool | None) -> tuple[Array, list[str]]:
        """The target of each row: indices of classes with their names, or numbers without."""
        known = list(self._known)
        self._check_header(known)
        self._check_names(known)
        if numbers is None:
            self._check_obvious(known)
            numbers = self._are_numbers(known)
            self._check_classes(known, numbers)
        if numbers:
            values = numbers_in(known)
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

    def _check_header(self, known: Sequence[str]) -> None:
        """Raise DataError where the first row has numbers and seems to be the header even so."""
        first, *others = known
        is_alone = self._targets.count(0) == 1
        if self.kept.columns or len(others) < 2 or is_number(first) or not is_alone:
            return
        if all(map(is_number, others)):
            raise DataError(
                f"{self._path}: row {self._rows[0]} ends with {quoted(first)}, and all others with "
                f"numbers; expected a header, which has no numbers as names unless "
                f"{setting('target')} names a column of it"
            )

    def _check_names(self, known: Sequence[str]) -> None:
        """Raise DataError where the first row was read as a header and is an example like others.

        It is one where a text in it, or a fraction, stands in the rows below or is a number.
        """
        if self._asked.named is not None or not self.kept.columns or self._is_usual:
            return
        columns: list[list[str]] = [[]] * len(self.kept.columns)
        if isinstance(self.kept, CellColumns):
            columns = self.kept.cells
        for name, cells in zip((*self.kept.columns, self.target), (*columns, known), strict=True):
            if not is_number(name) and name in map(str.strip, cells):
                found = "as rows below it have in this column"
            elif is_number(name) and not _INDEX.fullmatch(name):
                found = "which is a number"
            else:
                continue
            raise DataError(
                f"{self._path}: the first row has {quoted(name)}, {found}; expected a header with "
                f"the names of the columns, or {setting('target')} with one of these names if it "
                "is one"
            )

    def _check_obvious(self, known: Sequence[str]) -> None:
        """Raise DataError for a target that nobody named and that is a date or numbers the rows."""
        if self._asked.target is not None or not self.kept.columns or self._is_usual:
            return
        rows = len(self._targets)
        if date_pattern(known)[1] == len(known) and not all(map(is_number, known)):
            found = "dates"
        elif len(known) == rows and is_row_number(self.target, numbers_of(known, ".")):
            found = "a running number"
        elif 2 * len(known) > rows >= LONG_ENOUGH and not self._are_numbers(known):
            found = "a different text in nearly each row"
        else:
            return
        raise DataError(
            f"{self._path}: the last column, {quoted(self.target)}, holds {found} and would be "
            f"the target; expected {setting('target')} with the name of the column to predict: one "
            f"of {listed(self.kept.columns)}"
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
        numeric = [value for value in numbers_in(known) if value is not None]
        if 2 * len(numeric) <= len(known):
            return False
        return not all(map(float.is_integer, numeric)) or len(known) > MOST_CLASSES
