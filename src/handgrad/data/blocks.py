"""What is kept of the rows of a table while they are read: their numbers, or their cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import Bound
from handgrad.data.rows import is_number
from handgrad.errors import DataError
from handgrad.escaping import cut, listed, quoted
from handgrad.spelling import names_for

#: Numbers of a table that become an array at a time.
_BLOCK: Final = 2**16
#: Bytes of a text of Python beside its letters, and of a place in a list.
_TEXT: Final = 60
_PLACE: Final = 8


class NoNumberError(DataError):
    """A cell of a table that holds no number where one was expected."""


class NumberBlocks:
    """The numbers of a table as they are read, in blocks of float32."""

    def __init__(self, path: Path, *, may_drop: bool = False) -> None:
        self.path = path
        self.may_drop = may_drop
        self.columns: list[str] = []
        self._rows: list[list[str]] = []
        self._numbers: list[int] = []
        self._held = 0
        self.blocks: list[Array] = []

    def __len__(self) -> int:
        return len(self._rows) + sum(map(len, self.blocks))

    def take(self, number: int, cells: list[str], bound: Bound, more: int) -> None:
        """Add one row; more: bytes that are held for it beside its numbers."""
        self._rows.append(cells)
        self._numbers.append(number)
        self._held += 4 * len(cells) + more
        if len(self._rows) * (len(cells) + 1) >= _BLOCK:
            bound.check(self._held, "unpack it first, or " if self.path.suffix == ".gz" else "")
            self.convert()

    def convert(self) -> None:
        """Make a block of the rows. Raises NoNumberError naming a cell that is none."""
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
                for number, row in zip(self._numbers, self._rows, strict=True)
                for i, cell in enumerate(row)
                if not is_number(cell)
            ]
            number, i, cell = wrong[0]
            where = f" in column {quoted(self.columns[i])}" if self.columns else ""
            ways = self._ways({i for _, i, _ in wrong})
            raise NoNumberError(
                f"{self.path}: row {number} has {quoted(cell)}{where}; expected a number that "
                f"float32 holds in every column but the target{ways}"
            )
        self.blocks.append(block.reshape(len(self._rows), -1))
        self._rows, self._numbers = [], []

    def _ways(self, wrong: set[int]) -> str:
        """The end of a sentence on columns with other cells: these can be left out by name."""
        if not (self.columns and self.may_drop):
            return ""
        names = [self.columns[i] for i in sorted(wrong)]
        return f"; to leave out the columns with others: {cut(names_for('drop', names), 200)}"

    def column(self, i: int) -> Array:
        """The numbers in column i, (N,)."""
        return np.concatenate([block[:, i] for block in self.blocks] or [np.empty(0)])

    def divided(self, test: Array) -> tuple[Array, Array]:
        """The rows that are not among `test`, and those that are.

        The blocks are given up as they are divided, so that the numbers are in memory once.
        """
        blocks = self.blocks
        total = sum(map(len, blocks))
        chosen = np.zeros(total, dtype=bool)
        chosen[test] = True
        parts = [
            np.empty((count, blocks[0].shape[1]), np.float32)
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


class CellColumns:
    """The cells of a table as they are read, column by column; equal ones are held once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: list[str] = []
        self.cells: list[list[str]] = []
        self._known: dict[str, str] = {}
        self._held = 0

    def __len__(self) -> int:
        return len(self.cells[0]) if self.cells else 0

    def take(self, number: int, cells: list[str], bound: Bound, more: int) -> None:
        """Add one row; more: bytes that are held for it beside its cells."""
        if not self.cells:
            self.cells = [[] for _ in cells]
        self._held += _PLACE * len(cells) + more
        for column, cell in zip(self.cells, cells, strict=True):
            if cell not in self._known:
                self._known[cell] = cell
                self._held += 2 * (_TEXT + _PLACE) + 4 * len(cell)
            column.append(self._known[cell])
        if number % 1024 == 0:
            bound.check(self._held)

    def convert(self) -> None:
        """Forget what is needed while rows are read alone."""
        self._known = {}

    def rows(self, chosen: Array) -> list[list[str]]:
        """The cells of some of the rows, column by column."""
        return [[column[i] for i in chosen.tolist()] for column in self.cells]

    def named(self, columns: Sequence[str]) -> list[list[str]]:
        """The cells of these columns. Raises DataError where there is none of a name."""
        for name in columns:
            if name not in self.columns:
                raise DataError(f"there is no column {quoted(name)}; expected {listed(columns)}")
        return [self.cells[self.columns.index(name)] for name in columns]


#: Either of what is kept.
Kept = TypeVar("Kept", NumberBlocks, CellColumns)
