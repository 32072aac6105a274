"""Arrays on the board: what is exact stays exact, and what is rounded lines up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.documents.formulas.formula import Formula, Lines, Matrix, Script, Symbol
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.formulas.numbers import matrix, number, shape_of
from handgrad.equations.written import assigned
from handgrad.errors import ArgumentError
from tests.rows import rows


def entries(formula: Formula) -> list[list[str]]:
    assert isinstance(formula, Matrix)
    return [[to_latex(cell) for cell in cells] for cells in formula.rows]


@rows(
    ("value", "latex"),
    [
        (3, "3"),
        (-3.0, "-3"),
        (-0.0, "0"),
        (True, "1"),
        (2**60, str(2**60)),
        (0.5, r"\frac{1}{2}"),
        (-2 / 7, r"-\frac{2}{7}"),
        (1 / 3, r"\frac{1}{3}"),
        (np.float32(1 / 3), r"\frac{1}{3}"),
        (1 / 3 + 1e-12, "0.3333"),
        (1 / 13, "0.07692"),
        (0.1, "0.1"),
        (np.float32(0.1), "0.1"),
        (np.float16(0.3), "0.3"),
        (0.1 + 0.2, "0.3"),
        (0.001, "0.001"),
        (12.34567, "12.35"),
        (123456.789, "123456.8"),
        (1e-9, "10^{-9}"),
        (-2.5e-9, r"-2.5 \cdot 10^{-9}"),
        (1.23456e-7, r"1.235 \cdot 10^{-7}"),
        (12345678.5, r"1.235 \cdot 10^{7}"),
        (1e20, "10^{20}"),
        (np.nan, r"\text{NaN}"),
        (np.inf, r"\infty"),
        (-np.inf, r"-\infty"),
    ],
)
def test_one_number(value: Any, latex: str) -> None:
    assert to_latex(number(value)) == latex


def test_digits_are_chosen() -> None:
    assert to_latex(number(np.pi, digits=3)) == "3.14"
    assert to_latex(number(np.pi, digits=7)) == "3.141593"


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        ([[11, 8], [-5, 0]], [["11", "8"], ["-5", "0"]]),
        ([1 / 3, 1.0, -0.25], [[r"\frac{1}{3}", "1", r"-\frac{1}{4}"]]),
        ([0.1, 0.5, 1.0], [["0.1", "0.5", "1"]]),
        ([[1.1, 1.0], [2.0, -1.0]], [["1.1", "1"], [r"2 \phantom{.0}", "-1"]]),
        ([0.25, 0.5, 0.1 + 0.2], [["0.25", "0.50", "0.30"]]),
        ([0.0, 1.23456, -12.5], [["0", "1.23", "-12.50"]]),
        ([0.99991, 0.00009], [["0.9999", r"9 \cdot 10^{-5}"]]),
        ([0.0, -np.inf], [["0", r"-\infty"]]),
        ([True, False], [["1", "0"]]),
    ],
)
def test_one_style_for_an_array(array: Any, expected: list[list[str]]) -> None:
    assert entries(matrix(array)) == expected


def test_a_nearly_zero_entry_is_never_written_as_zero() -> None:
    rng = np.random.default_rng(3)
    for magnitudes in (3, 6, 12):
        values = rng.normal(size=50) * 10.0 ** rng.integers(-magnitudes, magnitudes, size=50)
        for line in entries(matrix(values, columns=50)):
            for cell in line:
                assert any(digit in cell.split(r" \cdot")[0] for digit in "123456789")


def test_decimals_stand_below_each_other() -> None:
    drawn = matrix(np.random.default_rng(1).normal(size=(4, 3)))
    assert isinstance(drawn, Matrix)
    assert drawn.align == "right"
    assert len({len(cell.split(".")[1]) for line in entries(drawn) for cell in line}) == 1


def test_a_large_array_is_elided_and_its_shape_stated() -> None:
    drawn = matrix(np.arange(200).reshape(10, 20), rows=4, columns=5)
    assert isinstance(drawn, Script)
    assert to_latex(drawn.sub) == r"10 \times 20"
    assert entries(drawn.base) == [
        ["0", "1", r"\cdots", "18", "19"],
        ["20", "21", r"\cdots", "38", "39"],
        [r"\vdots", r"\vdots", r"\ddots", r"\vdots", r"\vdots"],
        ["180", "181", r"\cdots", "198", "199"],
    ]


def test_a_long_vector_is_elided() -> None:
    drawn = matrix(np.arange(100), columns=4)
    assert isinstance(drawn, Script)
    assert (entries(drawn.base), to_latex(drawn.sub)) == ([["0", "1", r"\cdots", "99"]], "100")


def test_three_axes_are_labelled_slices() -> None:
    drawn = assigned(Symbol("K"), np.arange(16).reshape(2, 2, 2, 2))
    assert isinstance(drawn, Lines)
    assert [to_latex(left) for left, _ in drawn.rows] == [
        "K_{0, 0}",
        "K_{0, 1}",
        "K_{1, 0}",
        "K_{1, 1}",
    ]
    unnamed = matrix(np.zeros((3, 2, 2)), slices=2)
    assert isinstance(unnamed, Lines)
    assert [to_latex(left) for left, _ in unnamed.rows] == ["[0]", "[1]", r"\vdots"]
    assert to_latex(unnamed.rows[-1][1]) == r"(3 \times 2 \times 2)"


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_an_empty_array_states_its_shape(shape: tuple[int, ...]) -> None:
    drawn = matrix(np.zeros(shape))
    assert isinstance(drawn, Script)
    assert drawn.sub == shape_of(np.zeros(shape))


def test_an_empty_stack_of_matrices() -> None:
    drawn = matrix(np.zeros((0, 2, 2)))
    assert isinstance(drawn, Lines)
    assert to_latex(drawn.rows[0][1]) == r"(0 \times 2 \times 2)"


def test_the_update_of_notes_001_is_exact() -> None:
    W2 = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], float)
    dW2 = np.array([[11, 8, 17, 4], [10, 8, 14, 4], [5, 4, 7, 2]], float)
    assert entries(matrix(W2 - 0.1 * dW2)) == [
        ["-0.1", "-0.8", "-0.7", "-0.4"],
        [r"-1 \phantom{.0}", "0.2", "-1.4", "0.6"],
        ["0.5", "-0.4", "0.3", "-0.2"],
    ]
    assert entries(matrix(W2 - dW2 / 2))[0] == [
        r"-\frac{9}{2}",
        "-4",
        r"-\frac{15}{2}",
        "-2",
    ]


@pytest.mark.parametrize("array", ["a", 1j, [None], [[1], [1, 2]]])
def test_what_is_no_number_is_refused(array: Any) -> None:
    with pytest.raises(ArgumentError, match=r"notes: .*; allowed: "):
        matrix(array)


def test_number_takes_one_value() -> None:
    with pytest.raises(ArgumentError, match=r"found shape \(2,\)"):
        number([1, 2])
