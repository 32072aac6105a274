"""Cells of tables as people write them: numbers with separators and units, dates, nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import DataError
from handgrad.escaping import listed, quoted

#: Cells without a value, in lower case.
MISSING: Final = frozenset(
    {"", "na", "n/a", "#n/a", "nan", "<na>", "null", "nil", "nat", "?", "-", "--", "–", "—", "."}
)
#: What a decimal point may be; the other sign then parts thousands.
DECIMALS: Final = (".", ",")
#: Dates, the unambiguous order of year, month and day before the others.
_DAYS: Final = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"),
    *("%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d %B %Y"),
    *("%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%Y-%m"),
)
#: Beginning of the part of a pattern that is the time of the day.
CLOCK: Final = "%H"
_CLOCKS: Final = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S.%f")
DATE_PATTERNS: Final = tuple(day + clock for clock in _CLOCKS for day in _DAYS)

_UNIT: Final = r"(?:[$€£¥₹%]|lei|kr|zł|[A-Z]{3})"
_WRITTEN: Final = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[+\-−]?)\s*{_UNIT}?\s*(?P<later>[+\-−]?)"
    rf"(?P<body>\d[\d.,'’\s]*|[.,]\d+)(?P<power>[eE][+-]?\d{{1,3}})?\s*{_UNIT}?\s*(?P<close>\))?"
)
_BODIES: Final = {
    ".": re.compile(r"(\d{1,3}(?:[,'’\s]\d{3})+|\d+)(\.\d*)?|\.\d+"),
    ",": re.compile(r"(\d{1,3}(?:[.'’\s]\d{3})+|\d+)(,\d*)?|,\d+"),
}
_LARGEST: Final = float(np.finfo(np.float32).max)
#: Longer cells hold neither a number nor a date.
_LONGEST: Final = 40


def is_missing(cell: str) -> bool:
    """Return whether the cell holds no value."""
    return cell.strip().lower() in MISSING


def number_of(cell: str, decimal: str = ".") -> float | None:
    """The number in a cell: 1 234.5, $1,234.50, 12 %, (3.10), −4; None where there is none.

    decimal: "." or ",", the sign before the fraction. A share in percent is its number of percent,
    and what stands in brackets is below zero, as in accounts.
    """
    cell = cell.strip()
    match = _WRITTEN.fullmatch(cell) if len(cell) <= _LONGEST else None
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    body = match["body"].strip()
    if not _BODIES[decimal].fullmatch(body):
        return None
    digits = re.sub(rf"[{re.escape(',' if decimal == '.' else '.')}'’\s]", "", body)
    value = float(digits.replace(decimal, ".") + (match["power"] or ""))
    below = sum(bool(sign) and sign not in "+" for sign in (match["sign"], match["later"]))
    value = -value if (below + bool(match["open"])) % 2 else value
    return value if abs(value) <= _LARGEST else None


def numbers_of(cells: Sequence[str], decimal: str) -> Array:
    """The numbers in cells, (N,) float64, NaN where a cell holds none."""
    found = (number_of(cell, decimal) for cell in cells)
    return np.array([math.nan if value is None else value for value in found], np.float64)


def date_of(cell: str, pattern: str) -> datetime | None:
    """The date in a cell; None where it has another form."""
    cell = cell.strip()
    if not any(map(str.isdigit, cell[:_LONGEST])) or len(cell) > _LONGEST:
        return None
    cell = re.sub(r"(?<=\d)(?:Z|[+-]\d\d:?\d\d)$", "", cell) if CLOCK in pattern else cell
    try:
        return datetime.strptime(cell, pattern)
    except ValueError:
        return None


def iso_date(cell: str) -> datetime | None:
    """The date in a cell that is written as ISO 8601 has it, with the time of the day or without.

    Frames write dates so, whatever stood in the file that they were read from.
    """
    try:
        return datetime.fromisoformat(cell.strip()) if cell[4:5] == "-" else None
    except ValueError:
        return None


def text_of(value: Any) -> str:
    """A cell of a frame or of an array of objects as a table in a file would have it."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return str(value)


def in_columns(x: Any, columns: Sequence[str]) -> Any:
    """The columns of these names of a frame, in this order; whatever is no frame as it is.

    Raises DataError for a frame without one of them.
    """
    own = getattr(x, "columns", None)
    if own is None or not columns:
        return x
    names = [str(name) for name in own]
    for name in columns:
        if name not in names:
            raise DataError(f"x has no column {quoted(name)}; expected {listed(columns)}")
    values = x.to_numpy()
    return values[:, [names.index(name) for name in columns]]
