"""Columns of a table as numbers: a plan of what each holds, and of how a network is given it.

A number stays one; a cell without a value becomes the median, and a column of its own says which
these are. A text is a category: one column for each level that is 1 where the row has it, and so
the first layer's weights of a column are the vector that stands for the level. Of more levels than
`ALL_LEVELS` the number of the level goes to a network that begins with `layers.ColumnEmbeddings`
and learns a vector for each; to others go columns of the frequent ones. A date becomes its year,
month, day and day of the week. What would teach nothing is left out with its reason: a running
number, a text that is another in nearly each row, a column of one value.

The plan is made from the rows that are learned from alone and is kept with the model, so that other
rows are read in the same way.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.cells import (
    CLOCK,
    DATE_PATTERNS,
    DECIMALS,
    date_of,
    in_columns,
    is_missing,
    iso_date,
    numbers_of,
    text_of,
)
from handgrad.errors import ArgumentError, DataError
from handgrad.escaping import cut, listed, quoted

KINDS: Final = ("number", "category", "date", "left out")
#: Those that a user may say.
GIVEN: Final = KINDS[:3]
#: The most levels that a category may have for each of them to get a column.
ALL_LEVELS: Final = 30
#: The most columns of a category with more levels, and the rows that each of these has at least.
MOST_LEVELS: Final = 200
_FREQUENT: Final = 5
#: The longest vector that stands for a level.
MOST_FEATURES: Final = 64
#: Rows from which whole numbers that count upwards one by one are those of the rows.
LONG_ENOUGH: Final = 20
#: Whole numbers between these may be years, which count upwards too.
_YEARS: Final = (1700, 2100)
#: Names of columns with the number of a row, or of what it is about.
_ROW_NUMBER: Final = re.compile(r"(?:.*[\s_.-])?(?:id|index|uuid)|.*[a-z]I[dD]", re.DOTALL)
#: The share of cells that may hold no number, or no date, in a column of such; and the different
#: texts, such as "unknown", that half of the cells may hold beside many different numbers or dates.
_ODD: Final = 0.05
_FEW_TEXTS: Final = 2
_DATE_PARTS: Final = ("year", "month", "day", "weekday")


@dataclass(frozen=True)
class Column:
    """A column of a table: its kind, and what reading it needs.

    missing: the cells of the training rows that had no value. fill: the numbers that stand for such
    a cell. levels: those of a category that have a column; others: whether the rest has one
    together. vector: the length of the vector that a network learns for each level instead, 0 for
    columns; then levels are numbered from 2, 1 is a cell without a value, and 0 any other text.
    form: the decimal point of numbers, or the pattern of dates. note: a remark.
    """

    name: str
    kind: str
    missing: int = 0
    fill: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    others: bool = False
    form: str = ""
    note: str = ""
    vector: int = 0

    def __post_init__(self) -> None:
        texts = (self.name, self.kind, self.form, self.note, *self.levels)
        forms = {"number": DECIMALS, "date": DATE_PATTERNS}.get(self.kind, ("",))
        width = {"number": 1, "date": len(_date_names(self.form))}.get(self.kind, 0)
        if not (
            all(isinstance(each, str) for each in texts)
            and self.kind in KINDS
            and self.form in forms
            and all(type(each) is float for each in self.fill)
            and np.isfinite(self.fill).all()
            and len(self.fill) == width
            and type(self.missing) is int
            and type(self.others) is bool
            and type(self.vector) is int
            and 0 <= self.vector <= (MOST_FEATURES if self.kind == "category" else 0)
        ):
            raise ArgumentError(
                f"table: the column {quoted(self.name)} has settings that do not fit together; "
                f"allowed: a kind of {', '.join(KINDS)} with what belongs to it"
            )

    @property
    def names(self) -> list[str]:
        """The names of the numbers that it becomes."""
        match self.kind:
            case "left out":
                return []
            case "category" if self.vector:
                return [self.name]
            case "number":
                own = [self.name]
            case "date":
                own = [f"{self.name} {part}" for part in _date_names(self.form)]
            case _:
                own = [f"{self.name} = {level}" for level in self._columns]
                own += [f"{self.name} is another"] * self.others
        return own + [f"{self.name} is missing"] * (self.missing > 0)

    @property
    def _columns(self) -> tuple[str, ...]:
        """The levels with a column: of two that are all there is the second says both."""
        return self.levels[1:] if len(self.levels) == 2 and not self.others else self.levels

    @property
    def use(self) -> str:
        """The form in which the network is given it, in words."""
        match self.kind:
            case "left out":
                return f"left out: {self.note}"
            case "category" if self.vector:
                said = f"one of {len(self.levels)} or another, as {self.vector} learned numbers"
                return f"{said}; {self.note}" if self.note else said
            case "number":
                said = f"number, {self.fill[0]:g} where missing" if self.missing else "number"
            case "date":
                said = ", ".join(_date_names(self.form))
            case _:
                said = "yes or no" if len(self._columns) == 1 else f"one of {len(self.levels)}"
                said += " or another" if self.others else ""
        said += ", and whether it is missing" if self.missing else ""
        return f"{said}; {self.note}" if self.note else said

    @property
    def shown(self) -> str:
        """The same beside the kind, which says already that a column is left out."""
        return self.note if self.kind == "left out" else self.use

    def numbers(self, cells: Sequence[str]) -> Array:
        """The cells as numbers, (N, len(names)) float32."""
        out = np.zeros((len(cells), len(self.names)), np.float32)
        match self.kind:
            case "left out":
                return out
            case "category" if self.vector:
                at = {level: i for i, level in enumerate(self.levels, 2)}
                texts = map(str.strip, cells)
                out[:, 0] = [at.get(text, int(is_missing(text))) for text in texts]
                return out
            case "category":
                lacks = self._set_levels(cells, out)
            case _:
                values = _values(cells, self.kind, self.form)
                lacks = np.isnan(values[:, 0])
                out[:, : len(self.fill)] = np.where(lacks[:, None], self.fill, values)
        if self.missing:
            out[:, -1] = lacks
        return out

    def doubt(self, cells: Sequence[str]) -> str:
        """A remark on cells that were not to be expected from the training rows; "" without any."""
        texts = [text for text in map(str.strip, cells) if not is_missing(text)]
        if self.kind in ("number", "date"):
            odd = _unread(texts, self.kind, self.form)
            found = f"no {self.kind}, and read as missing"
        else:
            known = set(texts if self.others else self.levels)
            odd = [text for text in texts if text not in known]
            found = "in no row that was learned from"
        if not odd or self.kind == "left out":
            return ""
        count = f" (and {len(odd) - 1:,} others)" if len(odd) > 1 else ""
        return f"column {quoted(self.name)} holds {quoted(odd[0])}{count}, which is {found}"

    def _set_levels(self, cells: Sequence[str], out: Array) -> Array:
        """Set the columns of levels; True for the cells without a value."""
        at = {level: i for i, level in enumerate(self._columns)}
        lacks = np.zeros(len(cells), bool)
        for row, cell in enumerate(cells):
            level = cell.strip()
            if level in at:
                out[row, at[level]] = 1.0
            elif is_missing(level):
                lacks[row] = True
            elif self.others:
                out[row, len(at)] = 1.0
        return lacks


@dataclass(frozen=True)
class TableEncoding:
    """The step from the cells of rows to the numbers that a network reads.

    Called on x (N, len(sources)), the cells of the columns `sources` as texts or as objects of a
    frame, it gives (N, len(names)) float32. Raises ArgumentError for columns that are described by
    other settings, DataError for rows of another number of cells.
    """

    name: ClassVar[str] = "table"
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        made = tuple(map(_column, self.columns)) if isinstance(self.columns, tuple) else ()
        object.__setattr__(self, "columns", made)
        if not self.names:
            raise ArgumentError("table: no column is used; allowed: one or more")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def vectors(self) -> dict[int, tuple[int, int]]:
        """The numbers that are levels: for each the rows, and the length, of its vectors."""
        used = [column for column in self.columns if column.kind != "left out"]
        ends = np.cumsum([len(column.names) for column in used]).tolist()
        return {
            end - 1: (len(column.levels) + 2, column.vector)
            for column, end in zip(used, ends, strict=True)
            if column.vector
        }

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the columns that are read."""
        return tuple(column.name for column in self.columns if column.kind != "left out")

    def __call__(self, x: Array) -> Array:
        return self.encoded([list(map(text_of, cells)) for cells in self.cells(x).T])

    def cells(self, x: Any) -> Array:
        """The rows of x, a frame, a list of rows or an array, as objects (N, len(sources)).

        Of a frame these are the columns of the right names. Raises DataError for other shapes.
        """
        rows = np.asarray(in_columns(x, self.sources), object)
        if rows.ndim != 2 or rows.shape[1] != len(self.sources):
            raise DataError(
                f"x has rows of shape {rows.shape[1:]}; expected the {len(self.sources)} columns "
                f"{listed(self.sources)}"
            )
        return rows

    def doubts(self, rows: Array) -> list[str]:
        """Remarks on the rows of `cells`: what is no number where such are, levels that are new."""
        used = [column for column in self.columns if column.kind != "left out"]
        texts = (list(map(text_of, cells)) for cells in rows.T)
        return [
            said for column, own in zip(used, texts, strict=True) if (said := column.doubt(own))
        ]

    def encoded(self, cells: Sequence[Sequence[str]]) -> Array:
        """The numbers (N, len(names)) for the cells of `sources`, column by column."""
        used = [column for column in self.columns if column.kind != "left out"]
        parts = [column.numbers(own) for column, own in zip(used, cells, strict=True)]
        return np.concatenate(parts, axis=1)


def table_encoding(
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    kinds: Mapping[str, str],
    *,
    used: Sequence[str] = (),
    vectors: bool = False,
) -> TableEncoding:
    """The plan for columns of cells, each the same number of training rows.

    kinds: what columns are read as, "number", "category" or "date", where that is not to be found
    out. Those in it, and in `used`, are never left out as the number of the row. vectors: whether a
    category of many levels is given as their numbers, to `layers.ColumnEmbeddings`.
    Raises ArgumentError for another kind or column, DataError for cells that do not fit the kind,
    and where nothing is left that teaches.
    """
    for name, kind in kinds.items():
        if name not in names or kind not in GIVEN:
            raise ArgumentError(
                f"table: kinds has {quoted(name)}: {quoted(kind)}; allowed: {', '.join(GIVEN)} for "
                f"columns of the table: {listed(names)}"
            )
    made = tuple(
        _plan(name, cells, kinds.get(name, ""), is_used=name in used, vectors=vectors)
        for name, cells in zip(names, columns, strict=True)
    )
    if all(column.kind == "left out" for column in made):
        reasons = "; ".join(f"{column.name}: {column.note}" for column in made)
        raise DataError(f"no column has anything to learn from ({cut(reasons, 300)})")
    return TableEncoding(made)


def is_row_number(name: str, values: Array) -> bool:
    """Return whether a column of this name has the number of the row, and nothing else.

    Some rows may be missing; where the name says it too, the order may be any.
    """
    if len(values) < LONG_ENOUGH or not (values == np.rint(values)).all():
        return False
    if _ROW_NUMBER.fullmatch(name) or _ROW_NUMBER.fullmatch(name.lower()):
        return len(np.unique(values)) == len(values)
    if _YEARS[0] <= values.min() and values.max() <= _YEARS[1]:
        return False
    return bool((np.diff(values) > 0).all() and np.ptp(values) < 1.5 * len(values))


def date_pattern(cells: Sequence[str]) -> tuple[str, int]:
    """The pattern of dates that fits most of these cells, and how many it fits."""
    few = cells[:: max(1, len(cells) // 50)]
    counts = {
        pattern: sum(date_of(cell, pattern) is not None for cell in few)
        for pattern in DATE_PATTERNS
    }
    likely = [pattern for pattern in DATE_PATTERNS if counts[pattern] == max(counts.values())]
    if not counts[likely[0]]:
        return "", 0
    fits = {
        pattern: sum(date_of(cell, pattern) is not None for cell in cells) for pattern in likely
    }
    return max(fits.items(), key=lambda item: item[1])


def _plan(name: str, cells: Sequence[str], wanted: str, *, is_used: bool, vectors: bool) -> Column:
    """The plan of one column; wanted: its kind where somebody said it."""
    valued = [cell.strip() for cell in cells if not is_missing(cell)]
    missing = len(cells) - len(valued)
    counts = Counter(valued)
    if not valued:
        return Column(name, "left out", note="no cell has a value")
    if len(counts) == 1 and not missing:
        return Column(name, "left out", note="the same in each row")
    if wanted != "category":
        column = _measured(name, cells, valued, missing, wanted)
        if column is not None:
            guessed = column.kind == "number" and not (missing or wanted or is_used)
            if guessed and is_row_number(name, numbers_of(cells, column.form)):
                return Column(name, "left out", note="a running number")
            return column
    if wanted in ("number", "date"):
        raise DataError(f"column {quoted(name)} holds {quoted(valued[0])}; expected {wanted}s")
    if len(counts) <= ALL_LEVELS:
        return Column(name, "category", missing, levels=tuple(sorted(counts)))
    if 2 * len(counts) > len(valued) and not wanted:
        return Column(name, "left out", note="a different text in nearly each row")
    if vectors:
        return _with_vectors(name, counts, missing)
    least = 1 if wanted else _FREQUENT
    frequent = [level for level, count in counts.most_common(MOST_LEVELS) if count >= least]
    if not frequent:
        return Column(name, "left out", note="each text is in too few rows")
    rare = len(counts) - len(frequent)
    note = f"{rare} rare levels are one" if rare else ""
    return Column(name, "category", missing, (), tuple(sorted(frequent)), rare > 0, note=note)


def _with_vectors(name: str, counts: Counter[str], missing: int) -> Column:
    """A category whose levels have a vector each; those of one row share that of unknown ones.

    So that one is learned too. The vectors of n levels have √n numbers.
    """
    levels = tuple(sorted(level for level, count in counts.items() if count > 1))
    if not levels:
        return Column(name, "left out", note="a different text in each row")
    rare = len(counts) - len(levels)
    note = f"{rare} levels of one row are one" if rare else ""
    vector = min(MOST_FEATURES, math.ceil(math.sqrt(len(levels))))
    return Column(name, "category", missing, levels=levels, others=True, note=note, vector=vector)


def _measured(
    name: str, cells: Sequence[str], valued: Sequence[str], missing: int, wanted: str
) -> Column | None:
    """The plan of a column of numbers or dates; None where it holds texts."""
    found: tuple[str, str, int] = ("", "", 0)
    if wanted != "date":
        fits = {d: int((~np.isnan(numbers_of(valued, d))).sum()) for d in DECIMALS}
        form = max(DECIMALS, key=lambda decimal: fits[decimal])
        found = ("number", form, fits[form])
    if found[2] < len(valued) and wanted != "number":
        pattern, fit = date_pattern(valued)
        found = max(found, ("date", pattern, fit), key=lambda each: each[2])
    kind, form, fit = found
    odd = len(valued) - fit
    if fit == 0 or odd > 0.5 * len(valued):
        return None
    texts = _unread(valued, kind, form) if odd else []
    if odd > _ODD * len(valued) and not wanted:
        kinds = len(set(texts))
        if kinds > _FEW_TEXTS or len(set(valued)) - kinds <= ALL_LEVELS:
            return None
    values = _values(cells, kind, form)
    fill = tuple(map(float, np.nanmedian(values, axis=0)))
    note = ""
    if odd:
        shown = texts[0]
        some = f"{odd} cells such as {quoted(shown, 20)} are"
        note = f"{some if odd > 1 else f'the cell {quoted(shown, 20)} is'} read as missing"
    elif kind == "date" and {"%d/%m", "%m/%d", "%d-%m", "%m-%d"} & {form[:5]}:
        note = "day before month" if form.startswith("%d") else "month before day"
    return Column(name, kind, missing + odd, fill, form=form, note=note)


def _unread(cells: Sequence[str], kind: str, form: str) -> list[str]:
    """The cells that hold no number, or no date, of this form."""
    values = _values(cells, kind, form)[:, 0].tolist()
    return [cell for cell, value in zip(cells, values, strict=True) if math.isnan(value)]


def _values(cells: Sequence[str], kind: str, form: str) -> Array:
    """The numbers, or the parts of the dates, (N, K) float64; NaN where a cell has none."""
    if kind == "number":
        return numbers_of(cells, form)[:, None]
    nothing = [np.nan] * len(_date_names(form))
    dates = (date_of(cell, form) or iso_date(cell) for cell in cells)
    parts = [nothing if date is None else _parts(date, form) for date in dates]
    return np.array(parts, np.float64).reshape(len(cells), len(nothing))


def _date_names(form: str) -> tuple[str, ...]:
    return (*_DATE_PARTS, "hour") if CLOCK in form else _DATE_PARTS


def _parts(date: datetime, form: str) -> list[float]:
    parts: list[float] = [date.year, date.month, date.day, date.weekday()]
    return [*parts, date.hour + date.minute / 60] if CLOCK in form else parts


def _column(described: Any) -> Column:
    """The column as it is, or of its settings in a file."""
    if isinstance(described, Column):
        return described
    try:
        settings = dict(described) if isinstance(described, Mapping) else {}
        settings["fill"] = tuple(settings.get("fill", ()))
        settings["levels"] = tuple(settings.get("levels", ()))
        return Column(**settings)
    except TypeError:
        raise ArgumentError(
            "table: a column has other settings; allowed: those that a model's file has"
        ) from None
