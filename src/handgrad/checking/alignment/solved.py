"""A line of which the value departs, solved for the term or factor that a right value lacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations_with_replacement, islice, product
from typing import Final

import numpy as np

from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.variants import MISSING, Variant, binary, parsed, spreads
from handgrad.checking.alignment.wording import said

#: Right values, and variables, that are tried of one line.
_RIGHTS: Final = 60
_ATOMS: Final = 24
_SCALARS: Final = 12
_RELATIVE: Final = 1e-7
_NUMBERS: Final = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
_SCALED: Final = (ast.Div, ast.Mult)
#: Ways to write one number: of those that are equal at these sizes not all are at others.
_FORMS: Final = 3
Factor = tuple[ast.expr, np.ndarray]


def solved(
    node: ast.expr, own: np.ndarray, rights: np.ndarray, scope: CallScope
) -> Iterator[Variant]:
    """Changes of a line's whole expression that make one of these values of it.

    rights: (number, elements). Each is the value plus a term c·A or c·A·B, or times a factor.
    """
    with np.errstate(all="ignore"):
        rows = rights[:_RIGHTS] - own.ravel()
        ratios = rights[:_RIGHTS] / own.ravel()
        inverses = 1.0 / ratios
        # A number times the value is no term beside it.
        rows = rows[np.ptp(ratios, axis=1) > _RELATIVE * np.max(np.abs(ratios), axis=1)]
    part = said(node)
    for factor, values in _products(own, scope):
        column = np.broadcast_to(values, own.shape).ravel().astype(float)
        for c in _fitting(rows, column):
            for new in islice(_times(factor, c, scope), _FORMS):
                phrase = f"the term {{}} is missing beside {part}"
                yield binary(node, ast.Add(), new), "term missing", said(new), phrase
        for c in _fitting(ratios, column):
            for new in islice(_times(factor, c, scope), _FORMS):
                yield binary(node, ast.Mult(), new), "factor missing", said(new), MISSING
        if 1.0 in _fitting(inverses, column):
            label = said(binary(ast.Constant(1), ast.Div(), factor))
            yield binary(node, ast.Div(), factor), "factor missing", label, MISSING


def _fitting(rows: np.ndarray, column: np.ndarray) -> list[float]:
    """The numbers c of which c times the column is a row."""
    power = float(column @ column)
    if power == 0.0 or not np.isfinite(power) or np.ptp(column) == 0.0:
        return []
    with np.errstate(all="ignore"):
        found = rows @ column / power
        apart = np.max(np.abs(rows - found[:, None] * column), axis=1)
        fits = apart <= _RELATIVE * np.max(np.abs(rows), axis=1)
    return [float(c) for c in dict.fromkeys(np.round(found[fits], 12)) if c]


def _times(factor: ast.expr, c: float, scope: CallScope) -> Iterator[ast.expr]:
    """A factor times a number that has a name, as n, 2, dy/n, −1/2 have."""
    numbers = [
        (each, float(value))
        for each, value in (*scope.atoms, *scope.sizes)
        if not value.ndim and value.dtype.kind in "iuf" and value
    ]
    own: list[tuple[ast.expr | None, float]] = [(None, 1.0), *numbers[:_SCALARS]]
    for number, op, (one, first), (other, second) in product(_NUMBERS, _SCALED, own, own):
        made = number * (first * second if op is ast.Mult else first / second)
        if abs(c - made) > _RELATIVE * abs(c):
            continue
        new = factor if number == 1.0 else binary(parsed(f"{number:g}"), ast.Mult(), factor)
        new = new if one is None else binary(new, ast.Mult(), one)
        yield new if other is None else binary(new, op(), other)


def forms(scope: CallScope, ndim: int) -> Iterator[Factor]:
    """Variables of numbers, a vector also along each axis before the last of so many."""
    for each, value in scope.atoms:
        if value.dtype.kind in "iuf" and value.ndim and np.any(value):
            yield each, value
            for axes in range(1, ndim if value.ndim == 1 else 1):
                index = ast.Tuple([ast.Slice(), *[ast.Constant(None)] * axes], ast.Load())
                yield ast.Subscript(each, index, ast.Load()), value.reshape(-1, *[1] * axes)


def _products(own: np.ndarray, scope: CallScope) -> Iterator[Factor]:
    """Variables that broadcast to the shape of a value, products of two of them, and squares."""
    single = [form for form in forms(scope, own.ndim) if spreads(form[1], own.shape)]
    yield from single[: 2 * _ATOMS]
    for (one, left), (other, right) in combinations_with_replacement(single[:_ATOMS], 2):
        yield binary(one, ast.Mult(), other), left * right
