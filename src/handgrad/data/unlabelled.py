"""Rows of CSV without a target, for a model to answer, in the columns that it learned from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Generic

import numpy as np

from handgrad.arrays import Array
from handgrad.data.blocks import CellColumns, Kept, NumberBlocks
from handgrad.data.files import Bound
from handgrad.data.rows import is_number, rows_of, unnamed, width_of
from handgrad.errors import DataError
from handgrad.escaping import listed, quoted


def read_rows(path: Path, count: int, columns: Sequence[str] = ()) -> Array:
    """The examples in a CSV file without targets, (N, count) float32.

    columns: the names that the training data had. A file with a header has to have these, in any
    order, and may have others; one without has exactly `count`.
    Raises DataError naming a wrong row, or a column that is missing.
    """
    reader = _Examples(path, NumberBlocks(path), count, columns)
    for number, row, bound in rows_of(path):
        reader.add(number, row, bound)
    reader.close()
    return np.concatenate(reader.kept.blocks)


def read_cells(path: Path, columns: Sequence[str]) -> Array:
    """The cells of these columns of a CSV file, (N, len(columns)) texts in an array of objects.

    Raises DataError as `read_rows` does.
    """
    reader = _Examples(path, CellColumns(path), len(columns), columns)
    for number, row, bound in rows_of(path):
        reader.add(number, row, bound)
    reader.close()
    return np.array(reader.kept.cells, object).T


class _Examples(Generic[Kept]):
    """Rows without a target, their columns in the order of the training data."""

    def __init__(self, path: Path, kept: Kept, count: int, columns: Sequence[str]) -> None:
        self._path = path
        self.kept: Kept = kept
        self._columns = list(columns)
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
        self.kept.take(number, [row[i] for i in self._chosen], bound, 0)

    def _read_header(self, header: list[str]) -> bool:
        """Find the columns; False where the row is no header but one with a wrong cell."""
        names = [cell.strip() for cell in header]
        if not self._columns:
            is_header = not any(map(is_number, header)) and len(header) == len(self._chosen)
            self.kept.columns = names if is_header else []
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
        self.kept.columns = self._columns
        return True

    def close(self) -> None:
        """The last block. Raises DataError where there is no row."""
        self.kept.convert()
        if not len(self.kept):
            raise DataError(f"{self._path} has no rows; expected one example a row")
