from __future__ import annotations

import pytest

from handgrad.documents.formulas.formula import Number, Symbol
from handgrad.documents.formulas.latex import to_latex
from handgrad.equations.places import moved, split, turned

T, STEP = Symbol("T"), Symbol("t")


@pytest.mark.parametrize(
    ("by", "expected"), [(-2, "t - 2"), (-1, "t - 1"), (0, "t"), (1, "t + 1"), (3, "t + 3")]
)
def test_places_before_and_after(by, expected):
    assert to_latex(moved(STEP, by)) == expected
    assert moved(moved(STEP, by), -by) == STEP
    assert split(moved(STEP, by)) == (STEP, by)


def test_numbers_are_added_up():
    assert moved(Number("3"), -1) == Number("2")
    assert moved(Number("0"), -1) != Number("-1")  # a sign stands for itself


def test_places_from_the_end():
    assert to_latex(turned(STEP, T)) == "T - t + 1"
    assert turned(turned(STEP, T), T) == STEP
    assert to_latex(turned(moved(STEP, 1), T)) == "T - t"
    assert turned(Number("1"), T) == T
    assert turned(Number("1"), Number("4")) == Number("4")
    assert to_latex(turned(STEP, Number("4"))) == "5 - t"
    assert turned(turned(STEP, Number("4")), Number("4")) == STEP
