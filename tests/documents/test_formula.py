"""Formulas in LaTeX, Typst and MathML: right piece by piece, and read without complaint."""

from __future__ import annotations

import dataclasses

import pytest

from handgrad.documents.formulas.formula import (
    LETTERS,
    SIGNS,
    Accent,
    Big,
    Cases,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Lines,
    Matrix,
    Number,
    Operator,
    Phantom,
    Root,
    Script,
    Sign,
    Space,
    Symbol,
    Text,
    equals,
    gradient_of,
    row,
    separated,
    transpose,
)
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.formulas.mathml import to_mathml
from handgrad.documents.formulas.typst import to_typst
from handgrad.errors import ArgumentError
from tests.documents.mathml import faults
from tests.rows import rows

X, Y, N, W = (Symbol(name) for name in "xyNW")
ONE, TWO = Number("1"), Number("2")
HALF = Fraction(ONE, TWO)

#: Formula, its LaTeX, its Typst.
WRITTEN: list[tuple[Formula, str, str]] = [
    (Symbol("gamma"), r"\gamma", "γ"),
    (Symbol("epsilon"), r"\varepsilon", "ε"),
    (Symbol("gamma", bold=True), r"\boldsymbol{\gamma}", "bold(γ)"),
    (Symbol("W", bold=True, upright=True), r"\mathbf{W}", "bold(upright(W))"),
    (Symbol("d", upright=True), r"\mathrm{d}", "upright(d)"),
    (Number("0.25"), "0.25", "0.25"),
    (Text('a_b "c"'), r'\text{a\_b "c"}', r'"a_b \"c\""'),
    (row(Operator("exp"), X), r"\exp x", 'op("exp") x'),
    (row(Operator("mean"), Fenced(X)), r"\operatorname{mean} (x)", r'op("mean") lr(\( x \))'),
    (row(X, Space(), Y), r"x \thinspace y", "x thin y"),
    (row(Sign("−"), X, Sign("+"), TWO), "-x + 2", r"\− x \+ 2"),
    (Fenced(separated((X, Y)), "[", ")"), "[x, y)", r"lr(\[ x \, y \))"),
    (Fenced(HALF), r"\left( \frac{1}{2} \right)", r"lr(\( frac(1, 2) \))"),
    (Fenced(X, "|"), r"\left\lvert x \right\rvert", r"lr(\| x \|)"),
    (Fenced(X, "", "]"), r"\left. x \right]", r"lr( x \])"),
    (Root(X), r"\sqrt{x}", "sqrt(x)"),
    (Script(X, Symbol("i"), TWO), "x_{i}^{2}", "attach(scripts(x), b: i, t: 2)"),
    (transpose(Fenced(X)), r"{(x)}^{\top}", r"attach(scripts(lr(\( x \))), t: \⊤)"),
    (Accent("hat", X), r"\hat{x}", "hat(x)"),
    (Accent("hat", row(X, Y)), r"\widehat{x y}", "hat(x y)"),
    (Accent("bar", row(X, Y)), r"\overline{x y}", "overline(x y)"),
    (
        Big("sum", X, equals(Symbol("i"), ONE), N),
        r"\sum_{i = 1}^{N} x",
        r"attach(sum, b: i \= 1, t: N) x",
    ),
    (Big("max", X, Y), r"\operatorname*{max}_{y} x", 'attach(op("max", limits: #true), b: y) x'),
    (
        Matrix(((ONE, TWO), (X, Y)), align="right"),
        r"\left[ \begin{array}{rr} 1 & 2 \\ x & y \end{array} \right]",
        'mat(delim: #("[", "]"), align: #right, 1, 2; x, y)',
    ),
    (
        Matrix(((HALF,), (Fenced(X, "["),)), left=""),
        r"\begin{array}{c} \frac{1}{2} \\[3pt] {}[x] \end{array}",
        r"mat(delim: #(none, none), align: #center, frac(1, 2); lr(\[ x \]))",
    ),
    (
        Cases(((X, Text("if")), (ONE, Text("else")))),
        r"\begin{cases} x & \text{if} \\ 1 & \text{else} \end{cases}",
        'cases(x & quad "if", 1 & quad "else")',
    ),
    (
        Lines(((X, row(Sign("="), Y)), (Phantom(X), row(Sign("="), N)))),
        r"\begin{aligned} x & = y \\ \phantom{x} & = N \end{aligned}",
        r"x & \= y \ #hide($x$) & \= N",
    ),
    (
        gradient_of(Script(W, sub=ONE)),
        r"\frac{\partial L}{\partial W_{1}}",
        "frac(∂ L, ∂ attach(scripts(W), b: 1))",
    ),
]

GALLERY = [
    *(formula for formula, _, _ in WRITTEN),
    row(*(Symbol(name) for name in LETTERS)),
    row(*(Sign(char) for char in sorted(SIGNS))),
    row(*(Fenced(X, left) for left in "([{|‖⟨⌊⌈")),
    row(*(Fenced(HALF, left) for left in "([{|‖⟨⌊⌈")),
    row(*(Symbol(name, bold=True) for name in ("A", "z", "Gamma", "omega"))),
    row(Accent("tilde", X), Accent("dot", X), Accent("bar", X), Accent("tilde", row(X, Y))),
    row(Text("dacă și numai dacă, întâi"), Big("prod", FormulaRow((X, Y)))),
]


@rows(("formula", "latex", "typst"), WRITTEN)
def test_written_in_latex_and_typst(formula: Formula, latex: str, typst: str) -> None:
    assert to_latex(formula) == latex
    assert to_typst(formula) == typst


def test_typst_reads_every_formula() -> None:
    typst = pytest.importorskip("typst")
    source = "\n".join(f"$ {to_typst(formula)} $ and ${to_typst(formula)}$" for formula in GALLERY)
    _, warnings = typst.compile_with_warnings(source.encode(), ignore_system_fonts=True)
    assert not warnings


@rows("formula", GALLERY)
def test_mathml_is_what_browsers_draw(formula: Formula) -> None:
    assert faults(to_mathml(formula, display=True)) == []


def mathml(formula: Formula) -> str:
    return to_mathml(formula)


def test_functions_have_room_and_signs_have_none() -> None:
    space = '<mspace width="0.167em"/>'
    assert f"<mi>exp</mi>{space}<mi>x</mi>" in mathml(row(Operator("exp"), X))
    assert f"<mn>2</mn>{space}<mi>exp</mi><mrow><mo" in mathml(row(TWO, Operator("exp"), Fenced(X)))
    product = mathml(row(X, Sign("·"), Sign("−"), TWO, Sign("−"), ONE))
    assert product.count('form="prefix"') == 1
    assert "<mo>−</mo>" in mathml(row(Fenced(X), Sign("−"), ONE))


def test_mathml_keeps_upright_bold_and_words() -> None:
    assert '<mi mathvariant="normal">d</mi>' in mathml(Symbol("d", upright=True))
    assert "𝜸" in mathml(Symbol("gamma", bold=True))
    assert "<mtext>a_b &lt;</mtext>" in mathml(Text("a_b <")).replace("\N{NO-BREAK SPACE}", " ")
    assert "<munder><mi>mean</mi>" in mathml(Big("mean", X, Y))
    assert "<munderover>" in mathml(Fenced(Big("sum", X, Y, N)))


def test_fences_grow_only_around_what_is_tall() -> None:
    assert 'stretchy="true"' not in mathml(Fenced(X, "{"))
    assert mathml(Fenced(HALF, "{")).count('stretchy="true"') == 2


def test_rows_are_opened_and_one_part_stays_bare() -> None:
    assert row(X) == X
    assert row(X, FormulaRow((Y, N)), ONE) == FormulaRow((X, Y, N, ONE))
    assert separated((X,)) == X


def test_formulas_are_values() -> None:
    assert hash(gradient_of(X)) == hash(gradient_of(Symbol("x")))
    with pytest.raises(dataclasses.FrozenInstanceError):
        X.name = "y"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["", "foo", "é", "1", "\\x"])
def test_a_symbol_is_one_letter(name: str) -> None:
    with pytest.raises(ArgumentError, match="is no symbol"):
        Symbol(name)


def test_what_no_language_can_write_is_refused() -> None:
    with pytest.raises(ArgumentError, match="is no sign"):
        Sign("-")
    with pytest.raises(ArgumentError, match="cannot stand in a formula"):
        Text("a}b")
    with pytest.raises(ArgumentError, match="is no name of a function"):
        Operator("log_softmax")
    with pytest.raises(ArgumentError, match="is no name of a function"):
        Big("", X)
