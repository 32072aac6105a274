"""The examples of the Transformer Layer notes, with the numbers that must come out."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from handgrad.documents.document import Document, Equation, Paragraph
from handgrad.documents.formulas.formula import Number
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.formulas.numbers import matrix
from handgrad.equations.equations import derive
from handgrad.equations.measured import measure
from handgrad.equations.notes import notes
from handgrad.equations.topics import worked_topic
from handgrad.equations.worked import WORKED
from tests.documents.formulas import contains

LANGUAGES = ("en", "ro")

#: The first two rows are the source's; the third one is clipped.
FFN = {
    r"X W_{1}": [[3, 1, 1], [1, 1, 1], [1, -2, -1]],
    "A": [[3, 2, 1], [1, 2, 1], [1, -1, -1]],
    "V": [[3, 2, 1], [1, 2, 1], [1, 0, 0]],
    "Y": [[4, 2, 5, 2], [2, 2, 3, 2], [1, 0, 2, 0]],
    "L": 27.5,
    r"\frac{\partial L}{\partial Y}": [[3, 2, 5, 1], [2, 2, 2, 1], [1, -1, 1, 0]],
    r"\frac{\partial L}{\partial W_{2}}": [[12, 7, 18, 4], [10, 8, 14, 4], [5, 4, 7, 2]],
    r"\frac{\partial L}{\partial b_{2}}": [6, 3, 8, 2],
    r"\frac{\partial L}{\partial V}": [[8, 3, 8], [4, 3, 4], [2, -1, 2]],
    r"\frac{\partial L}{\partial A}": [[8, 3, 8], [4, 3, 4], [2, 0, 0]],
    r"\frac{\partial L}{\partial W_{1}}": [[10, 3, 8], [0, 3, 4], [20, 9, 20], [8, 3, 8]],
    r"\frac{\partial L}{\partial b_{1}}": [14, 6, 12],
    r"\frac{\partial L}{\partial X}": [[16, 11, 8, 3], [8, 7, 4, 3], [2, 0, 2, 0]],
}
TILES = {
    r"A_{00} B_{00}": [[5, 5], [17, 17]],
    r"A_{01} B_{10}": [[25, 25], [53, 53]],
    "C_{00}": [[30, 30], [70, 70]],
    "C": [[30] * 4, [70] * 4, [110] * 4, [150] * 4],
}
HEADS = {
    "Q^{(1)}": [[1, 2, 3, 4], [2, 1, 0, 1], [0, 1, 1, 0]],
    "Q^{(2)}": [[5, 6, 7, 8], [3, 3, 2, 2], [9, 8, 7, 6]],
}


def line_of(document: Document, symbol: str) -> Equation:
    """The numbered equation that begins with the symbol."""
    begins = rf"\begin{{aligned}} {symbol} &"
    (found,) = (
        block
        for block in document.blocks
        if isinstance(block, Equation)
        and block.number
        and to_latex(block.formula).startswith((begins, f"{symbol} ="))
    )
    return found


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(
    ("name", "expected"), [("ffn", FFN), ("tiles", TILES), ("head_split", HEADS)]
)
def test_the_numbers_come_out(name, expected, lang):
    document = notes(name, numbers=True, lang=lang).document
    for symbol, numbers in expected.items():
        formula = line_of(document, symbol).formula
        assert contains(formula, matrix(numbers)), f"{symbol}: {to_latex(formula)}"


@pytest.mark.parametrize("name", WORKED)
def test_the_gradients_are_right(name):
    found = measure(worked_topic(name, "en").subject)
    assert found
    for each in found:
        assert each.error <= each.bound, each


def test_the_values_before_and_after_relu_have_two_names():
    derivation = derive(worked_topic("ffn", "en").subject)
    lefts = [to_latex(each.left) for each in derivation.forward]
    assert lefts.count("A") == lefts.count("V") == 1
    for lang in LANGUAGES:
        first = notes("ffn", lang=lang).document.blocks[0]
        assert isinstance(first, Paragraph)
        assert "V" in str(first.content)
        assert "A" in str(first.content)


def test_the_loss_is_the_last_node():
    derivation = derive(worked_topic("ffn", "en").subject)
    assert to_latex(derivation.backward[0].right) == "Y - T"


def test_a_product_of_tiles_is_written_once():
    formula = to_latex(line_of(notes("tiles", numbers=True).document, "A_{00} B_{00}").formula)
    assert formula.count("A_{00} B_{00}") == 1


@pytest.mark.parametrize(("eta", "shown"), [(0.1, "0.1"), (1.0, "1")])
def test_parameters_are_updated(eta, shown):
    document = notes("ffn", numbers=True, eta=eta).document
    updates = [
        block.formula
        for block in document.blocks
        if isinstance(block, Equation) and r"\leftarrow" in to_latex(block.formula)
    ]
    assert len(updates) == 4
    (second,) = (each for each in updates if to_latex(each).startswith(r"\begin{aligned} W_{2}"))
    before = np.array(import_module("handgrad.equations.worked.ffn").INPUTS["W2"], float)
    gradient = np.array(FFN[r"\frac{\partial L}{\partial W_{2}}"])
    assert contains(second, matrix(before - eta * gradient))
    assert contains(second, Number(shown))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", WORKED)
def test_every_example_has_texts(name, lang):
    texts = import_module(f"handgrad.equations.worked.{name}").TEXTS
    assert len(texts[lang]) == 3
    assert notes(name, lang=lang).document.title == texts[lang][0]
