"""Every page: no word stands in the place of a symbol, and browsers draw what is written."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

import handgrad as hg
from handgrad import ops
from handgrad.documents.document import Document, Equation, opened
from handgrad.documents.formulas.formula import Big, Operator, Script, Text
from handgrad.documents.html import page
from handgrad.equations.models.examples import MODELS
from handgrad.equations.models.model import model_document
from handgrad.equations.notes import notes
from tests.documents.mathml import faults
from tests.equations.test_whole import CASES

OPS: Final = tuple(
    name
    for name in (each.name for each in pkgutil.iter_modules(ops.__path__))
    if hasattr(importlib.import_module(f"handgrad.ops.{name}"), "backward")
)

#: Words between formulas.
SAID: Final = {"if", "otherwise", "at", "kept", "NaN"}
#: Functions of the literature.
LITERATURE: Final = {
    *("Bernoulli", "arg", "cos", "erf", "exp", "gelu", "log", "max", "mean", "min", "prod", "relu"),
    *("sigmoid", "sign", "sin", "softmax", "sum", "swiglu", "tanh"),
}
#: The most letters of a word that stands for a value, as in 1/rms.
LETTERS: Final = 3


def words(part: Any) -> Iterator[str]:
    """The words of a formula that are no index."""
    if isinstance(part, tuple):
        for each in part:
            yield from words(each)
        return
    match part:
        case Text(said) | Operator(said):
            yield said.strip()
        case Script(base, _, sup):
            yield from words((base, sup))
        case _:
            for name in getattr(part, "__dataclass_fields__", ()):
                yield from words(getattr(part, name))
            if isinstance(part, Big):
                yield part.kind


def strange(document: Document) -> set[str]:
    """The words on a page that stand for what should have a symbol."""
    found = {
        said
        for block in opened(document.blocks)
        if isinstance(block, Equation)
        for said in words(block.formula)
        if len(said) > LETTERS
    }
    return found - SAID - LITERATURE


def check(*documents: Document) -> None:
    for document in documents:
        assert strange(document) == set()
        assert faults(page(document)) == []


@pytest.mark.parametrize("name", OPS)
def test_an_op_is_written_in_symbols(name):
    check(*(notes(name, measure=None, numbers=each).document for each in (False, True)))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_written_in_symbols(name):
    check(*(notes(name, measure=None, numbers=each).document for each in (False, True)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_layer_is_written_in_symbols(case):
    layer = case.make(np.random.default_rng(0))
    inputs = case.inputs if len(case.inputs) > 1 else case.inputs[0]
    check(model_document(layer, inputs, title=case.name, loss=case.loss))


DERIVED: Final = {
    "rms_norm": {"x": ("N", "D"), "gamma": ("D",)},
    "gelu": {"x": ("N",)},
    "layer_norm": {"x": ("N", "D"), "gamma": ("D",), "beta": ("D",)},
    "softmax": {"x": ("N", "C")},
}


@pytest.mark.parametrize("name", DERIVED)
def test_a_derivation_is_written_in_symbols(name):
    derived = hg.derive(getattr(ops, name).forward, **DERIVED[name])
    check(derived.notes().document)
