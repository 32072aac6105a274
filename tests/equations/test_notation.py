"""One table of symbols, and pages on which no symbol has two meanings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from docs.notation import PAGE, written
from handgrad.documents.document import Document, Equation, Heading, Mono
from handgrad.documents.formulas.formula import (
    Formula,
    FormulaRow,
    Script,
    Sign,
    Symbol,
    parts_in,
    row,
)
from handgrad.equations.equations import derive
from handgrad.equations.models.model import model_document
from handgrad.equations.notation import WORDS
from handgrad.equations.notes import notes
from handgrad.equations.subject import Subject
from handgrad.equations.topics import Topic, op_topic, worked_topic
from handgrad.equations.worked import WORKED
from tests.equations.test_whole import CASES
from tests.equations.test_words import MODELS, OPS

PAGES = pytest.mark.parametrize("name", [*OPS, *WORKED])


def topic(name: str) -> Topic:
    return worked_topic(name, "en") if name in WORKED else op_topic(name, (), {}, "en")


def sizes(shape: Formula) -> Iterator[Formula]:
    """The letters of a shape, each with its index."""
    scripts = [part for part in parts_in(shape) if isinstance(part, Script)]
    inside = {each for part in scripts for each in parts_in(part) if each != part}
    for part in parts_in(shape):
        if isinstance(part, Script | Symbol) and part not in inside:
            yield part


def subjects(found: Topic) -> list[Subject]:
    return [found.subject, *(subject for _, subject in found.variants)]


@PAGES
def test_no_symbol_has_two_meanings_on_a_page(name: str) -> None:
    """Two words of the table that share a symbol are apart, and so are sizes and arrays."""
    found = topic(name)
    usual = derive(found.subject, "en")
    letters, taken = (
        usual.glossary.letters,
        frozenset(each.symbol for each in usual.symbols if each.shape),
    )
    meanings: dict[Formula, set[str]] = defaultdict(set)
    arrays, axes = set(), set()
    for subject in subjects(found):
        for each in derive(subject, "en", letters=letters, taken=taken).symbols:
            for code in each.name.split(", "):
                if code in WORDS and WORDS[code].symbol == each.symbol:
                    meanings[each.symbol].add(WORDS[code].meaning)
            if each.shape is not None:
                arrays.add(each.symbol)
                axes.update(sizes(each.shape))
    assert [said for said in meanings.values() if len(said) > 1] == []
    assert arrays & axes == set()


def definitions(document: Document) -> Iterator[dict[Formula, set[Formula]]]:
    """What stands to the right of each left side, pass by pass.

    A function's name begins another pass: the same gradients in closed form.
    """
    found: dict[Formula, set[Formula]] = defaultdict(set)
    highest = min(each.level for each in document.blocks if isinstance(each, Heading))
    for block in document.blocks:
        if isinstance(block, Heading) and (
            block.level == highest or isinstance(block.content, Mono)
        ):
            yield found
            found = defaultdict(set)
        if isinstance(block, Equation) and isinstance(block.formula, FormulaRow):
            parts = block.formula.parts
            if Sign("=") in parts:
                at = parts.index(Sign("="))
                found[row(*parts[:at])].add(row(*parts[at + 1 :]))
    yield found


@pytest.mark.parametrize("name", [*MODELS, *(case.name for case in CASES)])
def test_a_pass_of_a_model_or_layer_defines_each_symbol_once(name: str) -> None:
    case = next((each for each in CASES if each.name == name), None)
    if case is None:
        document = notes(name, measure=None).document
    else:
        layer = case.make(np.random.default_rng(0))
        inputs = case.inputs if len(case.inputs) > 1 else case.inputs[0]
        document = model_document(layer, inputs, title=name, loss=case.loss)
    passes = list(definitions(document))
    assert any(passes)
    assert [left for each in passes for left, right in each.items() if len(right) > 1] == []


def test_the_size_of_an_image_is_no_weight() -> None:
    symbols = {each.name: each for each in derive(topic("conv2d").subject, "en").symbols}
    assert Script(Symbol("W"), Symbol("I")) in set(sizes(symbols["x"].shape))
    assert Script(Symbol("W"), Symbol("O")) in set(sizes(symbols["y"].shape))
    assert symbols["weight"].symbol == Symbol("W")


def test_every_word_has_a_meaning_and_a_symbol_of_its_own_in_the_page() -> None:
    page = PAGE.read_text("utf-8")
    assert written(page) == page, "run python -m docs.notation"
    for name, word in WORDS.items():
        assert word.meaning
        assert f"`{name}`" in page


def test_a_size_is_told_from_the_array_that_has_its_letter() -> None:
    def forward(W):
        return 2 * W, None

    def backward(dy, _cache):
        return 2 * dy

    forward.__annotations__["W"] = op_topic("relu", (), {}, "en").subject.forward.__annotations__[
        "x"
    ]
    subject = Subject(
        "own", forward, backward, {"W": np.ones((2, 3))}, {}, np.ones((2, 3)), ("dW",)
    )
    derived = derive(subject, "en")
    arrays = {each.symbol for each in derived.symbols}
    assert all(arrays.isdisjoint(sizes(each.shape)) for each in derived.symbols if each.shape)
