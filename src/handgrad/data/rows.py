"""Rows of CSV: their cells, as spreadsheets and programs divide them, and numbers in these."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from handgrad.data.cells import DECIMALS, number_of
from handgrad.data.files import Bound, read_lines, shortened
from handgrad.errors import DataError

#: What divides cells; of equal counts in the first row the first here counts.
_DELIMITERS: Final = ("\t", ";", "|", ",")
#: A first line by which spreadsheets are told what divides cells.
_SEPARATOR: Final = re.compile(r"sep=(?P<sign>[\t;|,])\s*", re.IGNORECASE)


def unnamed(names: Sequence[str]) -> int:
    """The cells at the end of a header that have no name, as behind a comma too many."""
    named = [i for i, name in enumerate(names) if name]
    return len(names) - 1 - max(named, default=-1)


def width_of(row: Sequence[str], width: int, unnamed: int) -> int:
    """The cells of a row, where the first one may lack those that have no name in the header."""
    return len(row) if len(row) == width - unnamed else width


def rows_of(path: Path) -> Iterator[tuple[int, list[str], Bound]]:
    """The rows that are not empty, each with its number among all rows and lines above them."""
    bound = Bound(path, 0)

    def lines() -> Iterator[str]:
        nonlocal bound
        for number, line, bound in read_lines(path, "CSV in UTF-8", newline=""):  # noqa: B007
            if "\0" in line:
                raise DataError(f"{path}: line {number:,} has a zero byte; expected CSV in UTF-8")
            yield line

    number = 0
    try:
        above, rows = _cells(lines())
        for number, row in enumerate(rows, above + 1):
            if any(row):
                yield number, row, bound
    except csv.Error as error:
        raise DataError(
            f"{path} cannot be read behind row {number} ({shortened(error)}); expected CSV in UTF-8"
        ) from None


def _cells(lines: Iterator[str]) -> tuple[int, Iterator[list[str]]]:
    """The cells of each row, divided as the first row shows, and the number of lines above them."""
    above: list[str] = []
    delimiter = ""
    for first in lines:
        if said := _SEPARATOR.fullmatch(first):
            delimiter = said["sign"]
        elif first.strip() and not first.startswith("#"):
            break
        above.append(first)
    else:
        return 0, iter(())
    # Not strict: a quoted cell may go on in the next line.
    delimiter = delimiter or max(
        _DELIMITERS, key=lambda each: len(next(csv.reader([first], delimiter=each)))
    )
    comments = [line.lstrip("# ") for line in above if line.startswith("#")]
    cells = [len(next(csv.reader([line], delimiter=delimiter))) for line in (*comments[-1:], first)]
    header = comments[-1:] if len(set(cells)) == 1 < cells[0] else []
    rows: Iterable[list[str]] = csv.reader(
        chain(header, [first], lines), strict=True, delimiter=delimiter
    )
    if delimiter == ";":
        rows = ([_with_point(cell) for cell in row] for row in rows)
    return len(above) - len(header), iter(rows)


def _with_point(cell: str) -> str:
    """A number with a decimal comma, such as 1.234,5 €, with a point; any other cell as it is."""
    if "," not in cell or number_of(cell, ",") is None:
        return cell
    return cell.replace(".", "").replace(",", ".")


def is_number(cell: str) -> bool:
    """Return whether it is a number that is finite in float32."""
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.float32(cell)))
    except ValueError:
        return False


def numbers_in(cells: Sequence[str]) -> list[float | None]:
    """The numbers in cells as people write them, None for a cell that holds none."""
    if all(map(is_number, cells)):
        return list(map(float, cells))
    ways = [[number_of(cell, decimal) for cell in cells] for decimal in DECIMALS]
    return min(ways, key=lambda values: values.count(None))
