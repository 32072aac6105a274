"""No word stands in the place of a symbol, on any page."""

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
from handgrad.documents.formulas.formula import Operator, Script, Text
from handgrad.equations.models.examples import MODELS
from handgrad.equations.models.model import model_document
from handgrad.equations.notes import notes
from tests.equations.test_whole import CASES

pytest.importorskip("latex2mathml")

OPS: Final = tuple(
    name
    for name in (each.name for each in pkgutil.iter_modules(ops.__path__))
    if hasattr(importlib.import_module(f"handgrad.ops.{name}"), "backward")
)

#: Words between formulas.
SAID: Final = {"if ", "otherwise", "axis ", "axis", "axes", "kept", "NaN"}
#: Functions of several letters, as softmax is one.
FUNCTIONS: Final = {
    "active steps",
    "along",
    "draw mask",
    "in time order",
    "merge heads",
    "rms",
    "split heads",
}
#: Arguments of a forward, which a reader finds by their names in the code.
ARGUMENTS: Final = {
    "dropout p",
    "ignore index",
    "labels",
    "padding idx",
    "reverse",
    "target",
    "targets",
}
#: Values whose letter another has, or that no paper gives one.
WORDS: Final = {
    "along h",
    "along s",
    "at labels",
    "at state",
    "batch",
    "count",
    "dx possible",
    "extended labels",
    "gates",
    "is impossible",
    "labels of each",
    "last",
    "length",
    "loss",
    "nowhere",
    "positive part",
    "pre a2",
    "smooth",
    "states before",
}


def words(part: Any) -> Iterator[str]:
    """The words of a formula that are no index."""
    if isinstance(part, tuple):
        for each in part:
            yield from words(each)
        return
    match part:
        case Text(said):
            yield said
        case Operator(name) if name.startswith(("f_", "getitem")):
            yield name
        case Script(base, _, sup):
            yield from words((base, sup))
        case _:
            for name in getattr(part, "__dataclass_fields__", ()):
                yield from words(getattr(part, name))


def strange(document: Document) -> set[str]:
    """The words on a page that stand for what should have a symbol."""
    found = {
        said
        for block in opened(document.blocks)
        if isinstance(block, Equation)
        for said in words(block.formula)
        if not said.isdigit()
    }
    return found - SAID - FUNCTIONS - ARGUMENTS - WORDS


@pytest.mark.parametrize("name", OPS)
def test_an_op_is_written_in_symbols(name):
    assert strange(notes(name, measure=None).document) == set()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_written_in_symbols(name):
    assert strange(notes(name, measure=None).document) == set()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_layer_is_written_in_symbols(case):
    layer = case.make(np.random.default_rng(0))
    inputs = case.inputs if len(case.inputs) > 1 else case.inputs[0]
    assert strange(model_document(layer, inputs, title=case.name, loss=case.loss)) == set()


DERIVED: Final = {
    "gelu": {"x": ("N",)},
    "layer_norm": {"x": ("N", "D"), "gamma": ("D",), "beta": ("D",)},
    "softmax": {"x": ("N", "C")},
}


@pytest.mark.parametrize("name", DERIVED)
def test_a_derivation_is_written_in_symbols(name):
    derived = hg.derive(getattr(ops, name).forward, **DERIVED[name])
    assert strange(derived.notes().document) == set()
