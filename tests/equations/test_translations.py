from __future__ import annotations

import re
from importlib import import_module
from typing import Final

import numpy as np
import pytest

from handgrad import layers, losses, models
from handgrad.documents.document import Document, Figure, Heading, List, Paragraph, Table, opened
from handgrad.documents.labels import label
from handgrad.equations.docstrings import introduction, purposes
from handgrad.equations.models.examples import MODELS
from handgrad.equations.models.model import model_document
from handgrad.equations.notes import notes
from handgrad.equations.translations import TRANSLATIONS, cited, is_translated, translated
from handgrad.equations.worked import WORKED
from handgrad.layers import Layer
from handgrad.layers.base import OpLayer
from handgrad.ops import OPS
from handgrad.optimizers import Adam, AdamW

#: Every op with a backward.
COVERED: Final = tuple(
    name for name in OPS if hasattr(import_module(f"handgrad.ops.{name}"), "backward")
)

#: Classes that other classes are of, and no layers or losses themselves.
BASES: Final = (Layer, OpLayer, losses.Loss)

#: Words that Romanian does not have, of every English sentence.
ENGLISH = re.compile(
    r"\b(the|of|is|and|with|for|from|where|each|as|by|in which|undated|sections?)\b"
)


def sentences(document: Document) -> list[str]:
    """The words on a page, without code and formulas."""
    found = []
    for block in opened(document.blocks):
        match block:
            case Paragraph(content):
                found.append(content)
            case Table(header, rows):
                found += [*header, *(cell for row in rows for cell in row)]
            case List(items):
                found += items
            case Heading(content) | Figure(caption=content):
                found.append(content)
    texts = [each if isinstance(each, tuple) else (each,) for each in found]
    return ["".join(span for span in each if isinstance(span, str)) for each in texts]


@pytest.mark.parametrize("target", [*COVERED, *WORKED, *MODELS])
def test_a_page_is_in_its_language_throughout(target):
    texts = sentences(notes(target, lang="ro", measure=None).document)
    assert label("ro", "from_code") not in texts
    assert [text for text in texts if ENGLISH.search(text)] == []


def test_the_notes_of_nobody_are_cited_in_the_language_of_the_page():
    texts = sentences(notes("softmax", lang="ro", measure=None).document)
    assert any(text.startswith("Anonymous, ") for text in texts)


@pytest.mark.parametrize("module", [layers, losses, models])
def test_every_class_is_introduced_in_romanian(module):
    classes = [each for each in map(vars(module).get, dir(module)) if isinstance(each, type)]
    written = [each for each in classes if issubclass(each, Layer | losses.Loss)]
    first = {each.__name__: introduction(each) for each in written if each not in BASES}
    assert {name: text for name, text in first.items() if not is_translated(text, "ro")} == {}


def test_a_picture_names_its_layers_in_romanian():
    layer = layers.Sequential(
        layers.Conv2d(1, 2, 3, dtype=np.float64, rng=np.random.default_rng(0))
    )
    document = model_document(layer, np.ones((1, 1, 4, 4)), title="x", lang="ro")
    drawn = [block for block in opened(document.blocks) if isinstance(block, Figure)]
    assert any("Convoluție" in each.svg for each in drawn)


@pytest.mark.parametrize("kind", [layers.AddNorm, layers.Residual, Adam, AdamW])
def test_a_page_says_why_a_part_is_there_and_who_says_so(kind):
    (english,) = purposes(kind)
    assert is_translated(english, "ro")
    for lang in ("en", "ro"):
        inner = layers.Dense(3, 3, dtype=np.float64, rng=np.random.default_rng(0))
        part = layers.AddNorm(inner, 3, dtype=np.float64) if kind is layers.AddNorm else None
        model = layers.Sequential(part or layers.Residual(inner))
        optimizer = kind() if kind in (Adam, AdamW) else None
        page = model_document(model, np.ones((2, 3)), title="x", lang=lang, optimizer=optimizer)
        told = sentences(page)
        assert sum(translated(english, lang) in each for each in told) == 1
        assert any(label(lang, "sources") in each for each in told)


def cube(x):
    return x**3, x


def cube_backward(dy, x):
    """Backward of somebody."""
    return 3.0 * dy * x**2


def test_a_page_that_is_not_translated_says_so():
    page = notes((cube, cube_backward), np.ones(3), lang="ro").document
    assert Paragraph(label("ro", "from_code")) in page.blocks


def test_translations_keep_code_and_letters():
    for lang, table in TRANSLATIONS.items():
        for english, words in table.items():
            assert re.findall("`.*?`", english) == re.findall("`.*?`", words), lang
            assert sorted(re.findall(r"[α-ω√−]", english)) == sorted(re.findall(r"[α-ω√−]", words))
            assert not set("şţŞŢ") & set(words), "comma below, not cedilla"


def test_a_source_is_cited_with_its_own_author_and_title():
    assert cited("Doe, On maps (2020), section 3; Anonymous, Notes (undated).", "ro") == (
        "Doe, On maps (2020), secțiunea 3; Anonymous, Notes (nedatat)."
    )
    assert cited("Doe, On maps (2020), section 3.", "en") == "Doe, On maps (2020), section 3."
