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
from handgrad.documents.formulas.latex import to_latex
from tests.deriving import forwards
from tests.deriving.loops_in_loops import rows_of_states, state_of_two_loops


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


def recurrent(x, w, u, b):
    h = np.zeros((x.shape[0], u.shape[0]))
    out = np.zeros((x.shape[0], x.shape[1], u.shape[0]))
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h @ u + b)
        out[:, t] = h
    return out


def test_rounds_are_written_by_their_times():
    """A person writes h_t of h_{t−1}, and what later rounds hand back."""
    shapes = {"x": ("N", "T", "D"), "w": ("D", "H"), "u": ("H", "H"), "b": ("H",)}
    page = hg.derive(recurrent, **shapes).notes().document
    lines = [to_latex(each.formula) for each in opened(page.blocks) if isinstance(each, Equation)]
    assert lines == [
        r"h_{-1} = y = 0",
        r"h_{t} = \tanh (x_{t} \thinspace W + h_{t - 1} \thinspace u + b)",
        r"y_{t} = h_{t}",
        r"d h_{T - 1} = d x = d W = d u = d b = 0",
        r"d h_{t} \leftarrow d y_{t} + d h_{t}",
        r"\delta_{t} = d h_{t} \odot (1 - h_{t}^{2})",
        r"d h_{t - 1} = \delta_{t} \thinspace u^{\top}",
        r"d x_{t} \leftarrow d x_{t} + \delta_{t} \thinspace W^{\top}",
        r"d W \leftarrow d W + x_{t}^{\top} \thinspace \delta_{t}",
        r"d u \leftarrow d u + h_{t - 1}^{\top} \thinspace \delta_{t}",
        r"d b \leftarrow d b + \sum_{N} \delta_{t}",
    ]


def given(x, h0, u):
    h = h0
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ u)
    return h


def listed(x, h0, u):
    h, found = h0, []
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ u)
        found.append(h)
    return np.stack(found)


def gates(x, w):
    a = x @ w
    return np.tanh(a[:, :2]) * a[:, 2:4] + np.exp(a[:, 4:])


def recurrence(x, a):
    y = np.zeros_like(x)
    y[0] = x[0]
    for t in range(1, x.shape[0]):
        y[t] = a * y[t - 1] + x[t]
    return y


def swapped(x, n=7):
    a, b = x, 2 * x
    for _ in range(n):
        a, b = b, a * b
    return b


LINES = [
    # A number below an array's name is no time.
    (given, ((4, 3), (3,), (3, 3)), r"h^{(-1)} = h_{0}"),
    (given, ((4, 3), (3,), (3, 3)), r"d h_{0} = d h^{(-1)}"),
    # A stack of all rounds is told, as every result is.
    (listed, ((4, 3), (3,), (3, 3)), r"y = h^{(0 \cdots"),
    # Parts that make up an axis stand side by side.
    (gates, ((3, 4), (4, 6)), r"\mid"),
    # A place that is written is the left side.
    (recurrence, ((5,), ()), r"y_{0} = x_{0}"),
    (recurrence, ((5,), ()), r"y_{t + 1} = a \thinspace y_{t} + x_{t + 1}"),
    # Two values of one name are two.
    (swapped, ((3,),), r"b_{t}^{\prime} = b_{t - 1}"),
    # An array that the rounds of a loop inside fill is one throughout.
    (rows_of_states, ((3, 4), ()), r"y_{t, i} = s_{t, i}"),
    # A value that a loop inside hands on has the rounds of both, and ends as the round's own.
    (state_of_two_loops, ((3, 4, 2), (2,)), r"h_{t, - 1} = h_{t - 1}"),
    (state_of_two_loops, ((3, 4, 2), (2,)), r"h_{t} = h_{t, D - 1}"),
    (state_of_two_loops, ((3, 4, 2), (2,)), r"d h_{t - 1} = d h_{t, - 1}"),
]


@pytest.mark.parametrize("case", LINES, ids=lambda case: f"{case[0].__name__} {case[2]}")
def test_a_loop_has_the_line(case):
    forward, shapes, line = case
    lines = [to_latex(each) for each in _formulas(forward, _normal(*shapes))]
    assert any(line in each for each in lines), lines


def _stands_in(left: tuple[Formula, ...], part: Formula) -> bool:
    if len(left) == 1:
        return part == left[0]
    row = part.parts if isinstance(part, FormulaRow) else ()
    return any(row[i : i + 2] == left for i in range(len(row)))
