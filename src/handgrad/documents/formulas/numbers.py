"""Arrays as a teacher writes them on the board.

One array is written in one style. Where every entry is exactly an integer or a small fraction, that
is what stands there. Otherwise its entries are decimals with their points below each other, all to
the same place, except that an integer keeps its bare digits: "0" is zero and nothing else is; it
has room for decimals where others of its column have some.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction as Rational
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Lines,
    Matrix,
    Number,
    Phantom,
    Script,
    Sign,
    Space,
    Symbol,
    Text,
    row,
    separated,
)
from handgrad.errors import ArgumentError

#: The float nearest to n/d is written n/d for these d; tenths read better as decimals.
DENOMINATORS = frozenset((2, 3, 4, 5, 6, 7, 8, 9, 11, 12))
_LARGEST_NUMERATOR = 999

#: Larger ones are written with a power of ten, as are those that no decimal would be left of.
_LARGEST_PLAIN = 1e6
_LARGEST_INTEGER = 1e15

_DOTS = -1


def number(value: Any, *, digits: int = 4) -> Formula:
    """One number: an integer, a small fraction, or a decimal with so many significant digits.

    A boolean is 1 or 0. Raises ArgumentError for what is no single real number.
    """
    values = _real(value)
    if values.size != 1:
        raise ArgumentError(
            f"notes: a number was expected, found shape {values.shape}; allowed: one value"
        )
    return _entry(values.item(), _places(values, digits), digits, alone=True)


def matrix(
    array: Any,
    *,
    digits: int = 4,
    rows: int = 8,
    columns: int = 8,
    slices: int = 8,
    name: Formula | None = None,
) -> Formula:
    """An array as a matrix, a vector as one row, a scalar bare.

    Three or more axes become one line for each matrix of the last two, labelled with the other
    indices, which count from 0: `name` with subscripts if it is given, otherwise in brackets.
    What is beyond `rows`, `columns` or `slices` is left out, dots stand for it, and the shape is
    stated. A boolean is 1 or 0. Raises ArgumentError for what is no array of real numbers.
    """
    values = _real(array)
    if values.ndim == 0:
        return number(values, digits=digits)
    board = _Board(_places(values, digits), digits, rows, columns)
    if values.ndim <= 2:
        return board.matrix(values)
    return Lines(tuple(_slices(values, board, slices, name)))


def shape_of(array: Any) -> Formula:
    """The sizes of the axes with × between them, as in 3 × 8."""
    sizes = tuple(Number(str(size)) for size in np.shape(array))
    return separated(sizes, "×") if sizes else Number("1")


def _real(array: Any) -> npt.NDArray[Any]:
    try:
        values = np.asarray(array)
    except ValueError as error:
        raise ArgumentError(
            f"notes: what was given is no array: {error}; allowed: numbers in rows of equal length"
        ) from None
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind in "iuf":
        return values
    try:
        return values.astype(np.float64, casting="safe")  # such as bfloat16
    except TypeError:
        raise ArgumentError(
            f"notes: an array of dtype {values.dtype} cannot be written as numbers; "
            "allowed: real numbers and booleans"
        ) from None


def _slices(
    values: npt.NDArray[Any], board: _Board, slices: int, name: Formula | None
) -> Iterator[tuple[Formula, Formula]]:
    outer = values.shape[:-2]
    for index in islice(np.ndindex(*outer), slices):
        label = separated(tuple(Number(str(i)) for i in index))
        left = Fenced(label, "[") if name is None else Script(name, sub=label)
        yield left, row(Sign("="), board.matrix(values[index]))
    if math.prod(outer) > slices or values.size == 0:
        yield Sign("⋮"), Fenced(shape_of(values))


@dataclass(frozen=True)
class _Board:
    """How the matrices of one array are written: decimal places (None: exactly), and how much."""

    places: int | None
    digits: int
    rows: int
    columns: int

    def matrix(self, values: npt.NDArray[Any]) -> Formula:
        """One or two axes; with the shape at its foot where not everything is shown."""
        lines = np.atleast_2d(values)
        kept_rows = _kept(lines.shape[0], self.rows)
        kept_columns = _kept(lines.shape[1], self.columns)
        if not kept_rows or not kept_columns:
            return Script(Fenced(Space(), "["), sub=shape_of(values))
        shown = lines[[i for i in kept_rows if i != _DOTS]]
        whole_columns = {j for j in kept_columns if (shown[:, j] == np.rint(shown[:, j])).all()}
        cells = tuple(
            tuple(self._cell(lines, i, j, alone=j in whole_columns) for j in kept_columns)
            for i in kept_rows
        )
        fractions = any(_has_fraction(cell) for line in cells for cell in line)
        drawn = Matrix(cells, align="center" if fractions else "right")
        whole = _DOTS not in kept_rows and _DOTS not in kept_columns
        return drawn if whole else Script(drawn, sub=shape_of(values))

    def _cell(self, lines: npt.NDArray[Any], i: int, j: int, *, alone: bool) -> Formula:
        if i == _DOTS and j == _DOTS:
            return Sign("⋱")
        if i == _DOTS or j == _DOTS:
            return Sign("⋮") if i == _DOTS else Sign("⋯")
        return _entry(lines[i, j].item(), self.places, self.digits, alone=alone)


def _kept(size: int, limit: int) -> list[int]:
    """The indices to show, and _DOTS for those between."""
    if size <= limit:
        return list(range(size))
    return [*range(limit // 2), _DOTS, *range(size - (limit - 1) // 2, size)]


def _has_fraction(cell: Formula) -> bool:
    parts = cell.parts if isinstance(cell, FormulaRow) else (cell,)
    return isinstance(parts[-1], Fraction)


def _places(values: npt.NDArray[Any], digits: int) -> int | None:
    """To how many decimal places an array is written; None where every entry has an exact form."""
    finite = values[np.isfinite(values)]
    broken = finite[finite != np.rint(finite)]
    if _are_small_fractions(broken).all():
        return None
    sizes = abs(broken).astype(np.float64)
    plain = broken[(sizes >= 10.0**-digits) & (sizes < _LARGEST_PLAIN)]
    if not plain.size:
        return 0
    largest = math.floor(math.log10(abs(plain).max()))
    smallest = math.floor(math.log10(abs(plain).min()))
    places = max(digits - 1 - largest, -smallest, 1)
    rounding = 4 * float(np.finfo(values.dtype).eps)
    while places > 1 and np.allclose(np.round(plain, places - 1), plain, rtol=rounding, atol=0):
        places -= 1
    return places


def _are_small_fractions(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which values are the nearest floats of their dtype to a small fraction."""
    found = np.zeros(values.shape, dtype=bool)
    for denominator in DENOMINATORS:
        numerators = np.rint(values * denominator)
        small = abs(numerators) <= _LARGEST_NUMERATOR
        found |= small & (numerators / denominator == values)
    return found


def _entry(value: float, places: int | None, digits: int, *, alone: bool) -> Formula:
    """One entry; an integer that is not `alone` has decimals above or below it."""
    if math.isnan(value):
        return Text("NaN")
    drawn = _magnitude(abs(value), places, digits, alone=alone)
    return row(Sign("−"), drawn) if value < 0 else drawn


def _magnitude(value: float, places: int | None, digits: int, *, alone: bool) -> Formula:
    if value == math.inf:
        return Symbol("infinity")
    if value == int(value) and (isinstance(value, int) or value < _LARGEST_INTEGER):
        whole = Number(str(int(value)))
        return row(whole, Phantom(Number("." + "0" * places))) if places and not alone else whole
    if not 10.0**-digits <= value < _LARGEST_PLAIN:
        return _scientific(value, digits)
    if places is None:
        exact = Rational(value).limit_denominator(max(DENOMINATORS))
        return Fraction(Number(str(exact.numerator)), Number(str(exact.denominator)))
    return Number(f"{value:.{places}f}")


def _scientific(value: float, digits: int) -> Formula:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    short = mantissa.rstrip("0").rstrip(".")
    if float(f"{short}e{exponent}") == value:
        mantissa = short
    power = Script(Number("10"), sup=number(int(exponent)))
    return power if mantissa == "1" else row(Number(mantissa), Sign("·"), power)
