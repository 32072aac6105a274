from __future__ import annotations

import pytest

from handgrad.documents.formulas.formula import (
    Accent,
    FormulaRow,
    Fraction,
    Number,
    Script,
    Sign,
    Symbol,
    Text,
    gradient_of,
    parts_in,
    row,
    transpose,
)
from handgrad.documents.formulas.latex import to_latex
from handgrad.equations.models.symbols import (
    inline,
    numbered,
    parameter_symbol,
    renamed,
    value_gradient,
    value_symbol,
)

X, W, SIGMA, MU = (Symbol(name) for name in ("x", "W", "sigma", "mu"))
X_HAT = Accent("hat", X)
VARIANCE = Script(SIGMA, None, Number("2"))
ROOT = Script(SIGMA, Symbol("epsilon"))
RUNNING = Script(MU, Text("run"))
PRIME = Sign("′")

NAMES = {
    X: value_symbol(2),
    **{each: numbered(each, 3) for each in (W, X_HAT, VARIANCE, ROOT, RUNNING, MU)},
    gradient_of(X): value_gradient(2, 3),
}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (row(X, transpose(W)), r"h_{2} W_{3}^{\top}"),
        (Script(W, row(Symbol("m"), Sign(","), Symbol("n"))), r"W_{3, m, n}"),
        (Script(W, Symbol("m"), Sign("⊤")), r"W_{3, m}^{\top}"),
        (X_HAT, r"{\hat{x}}_{3}"),
        (Script(X, None, Number("2")), r"h_{2}^{2}"),
        (VARIANCE, r"\sigma_{3}^{2}"),
        (Fraction(X_HAT, ROOT), r"\frac{{\hat{x}}_{3}}{\sigma_{\varepsilon, 3}}"),
        (Script(MU, Text("run"), PRIME), r"\mu_{\text{run}, 3}^{\prime}"),
        (Script(SIGMA, None, FormulaRow((Number("2"), PRIME))), r"\sigma_{3}^{2 \prime}"),
        (Script(X, Symbol("n")), r"h_{2, n}"),
        (gradient_of(X), r"\frac{\partial L}{\partial h_{2}^{(3)}}"),
        (gradient_of(Script(W, Symbol("m"))), r"\frac{\partial L}{\partial W_{3, m}}"),
        (Symbol("y"), "y"),
    ],
)
def test_symbols_take_the_number_of_their_layer(formula, expected):
    assert to_latex(renamed(formula, NAMES)) == expected


def test_parameters_are_numbered():
    assert to_latex(parameter_symbol("weight", 2, 4)) == "W_{4}"
    assert to_latex(parameter_symbol("gamma", 1, 4)) == r"\gamma_{4}"
    assert to_latex(parameter_symbol("inner.bias", 1, 4)) == r"b_{4, \text{inner}}"
    assert to_latex(numbered(Fraction(Number("1"), SIGMA), 2)) == r"\frac{1}{\sigma_{2}}"


def test_a_label_has_its_fraction_in_one_line():
    assert to_latex(inline(value_gradient(1))) == r"\partial L / \partial h_{1}"
    assert inline(X) == X


def test_what_stands_in_a_formula_is_found():
    assert W in parts_in(row(X, transpose(W)))
    assert MU not in parts_in(row(X, transpose(W)))
