"""Pages of derivations have no word of code in the place of a symbol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.documents.document import Equation, opened
from handgrad.documents.formulas.formula import (
    Formula,
    FormulaRow,
    Script,
    Sign,
    Symbol,
    Text,
    parts_in,
)
from tests.deriving import forwards


def cell(x, w, u):
    h = np.zeros((x.shape[0], u.shape[0]))
    c = np.zeros_like(h)
    for t in range(x.shape[1]):
        c_new = c * 0.5 + np.tanh(x[:, t] @ w + h @ u)
        h = np.tanh(c_new)
        c = c_new
    return h


def turned(x):
    return np.sort(x, axis=-1)[..., ::-1] * 2


def rolled(x):
    return np.roll(x, 1, axis=0) * np.roll(x, -2, axis=1)


def solved(a, b):
    return np.linalg.solve(a, b)


def volume(a):
    return np.log(np.linalg.det(a @ a.T + np.eye(3)))


def crossed(a, b):
    return np.outer(a, b).diagonal()


def chosen(a, b):
    return np.where((a >= b) & (b < 1), a[:, ::-1], np.fmax(a, b))


def _normal(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape) for shape in shapes)


CASES = [
    (cell, _normal((2, 3, 4), (4, 5), (5, 5))),
    (turned, _normal((3, 4))),
    (rolled, _normal((3, 4))),
    (solved, _normal((3, 3), (3, 2))),
    (volume, _normal((3, 3))),
    (crossed, _normal((3,), (3,))),
    (chosen, _normal((3, 4), (3, 4))),
    (forwards.softmax, _normal((3, 4))),
    (forwards.attention, _normal((3, 4), (5, 4), (5, 2))),
    (forwards.batch_norm, _normal((5, 3), (3,), (3,))),
]


def _formulas(forward: Any, arrays: tuple[np.ndarray, ...]) -> Iterator[Formula]:
    page = hg.derive(forward, *arrays).notes().document
    return (each.formula for each in opened(page.blocks) if isinstance(each, Equation))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_functions_have_signs_and_values_letters(case):
    for formula in _formulas(*case):
        for part in parts_in(formula):
            if isinstance(part, Script):
                assert not (part.base == Symbol("f") and isinstance(part.sub, Text)), part
            assert not (isinstance(part, Text) and "_" in part.text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_nothing_is_equal_to_itself_and_more(case):
    """A value that is made of what it was is set with an arrow."""
    for formula in _formulas(*case):
        left, right = _sides(formula)
        assert not any(_stands_in(left, part) for part in parts_in(right)), formula


def _sides(formula: Formula) -> tuple[tuple[Formula, ...], Formula]:
    assert isinstance(formula, FormulaRow)
    parts = formula.parts
    if Sign("=") not in parts:
        return (Text("nothing"),), formula
    at = parts.index(Sign("="))
    if len(parts[at + 1 :]) == at:  # one symbol for another, or a step without a name
        return (Text("nothing"),), formula
    left = parts[:at]
    is_named = len(left) == 1 or (len(left) == 2 and left[0] == Symbol("d"))
    return (left if is_named else (Text("nothing"),)), FormulaRow(parts[at + 1 :])


def _stands_in(left: tuple[Formula, ...], part: Formula) -> bool:
    if len(left) == 1:
        return part == left[0]
    row = part.parts if isinstance(part, FormulaRow) else ()
    return any(row[i : i + 2] == left for i in range(len(row)))
