from __future__ import annotations

import re

import pytest

from handgrad.documents.document import Document, Figure, Heading, List, Paragraph, Table, opened
from handgrad.documents.labels import label
from handgrad.equations.notes import notes
from handgrad.equations.translations import TRANSLATIONS, cited
from handgrad.equations.worked import WORKED

pytest.importorskip("latex2mathml")

#: The ops of the Romanian notes, which are found whole in their language.
COVERED = ("attention", "layer_norm", "linear", "matmul", "relu", "softmax", "squared_error")

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


@pytest.mark.parametrize("target", [*COVERED, *WORKED])
def test_a_page_is_in_its_language_throughout(target):
    document = notes(target, lang="ro").document
    texts = sentences(document)
    assert label("ro", "from_code") not in texts
    for text in texts:
        assert not ENGLISH.search(text), text
    assert any(text.startswith("Anonymous, ") for text in texts)


def test_a_page_that_is_not_translated_says_so():
    assert Paragraph(label("ro", "from_code")) in notes("gelu", lang="ro").document.blocks


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
