"""docs/references.md: every source that the package cites, by author, title and year."""

from __future__ import annotations

import re

import pytest

from docs.mistakes.page import MODULES
from docs.references import PACKAGE, PAGE, SUFFIXES, citations, faults, listed, sources, written

CITED = citations(PACKAGE)
PAGE_TEXT = PAGE.read_text("utf-8")
REFERENCES = listed(PAGE_TEXT)
#: These folders speak of the notes that handgrad prints, and of nobody else's.
PRINTERS = {"cli", "checking", "documents", "equations", "program"}
MODULE_TEXTS = {
    path.relative_to(PACKAGE): path.read_text("utf-8")
    for path in sorted(PACKAGE.rglob("*"))
    if path.suffix in SUFFIXES
}


def test_every_source_is_listed_and_every_reference_is_cited() -> None:
    assert faults(REFERENCES, CITED) == []


def test_the_page_names_the_modules_that_cite_each() -> None:
    assert written(PAGE_TEXT, CITED) == PAGE_TEXT, "run python -m docs.references"


def test_references_are_in_alphabetical_order_and_have_a_year() -> None:
    names = [each.citation for each in REFERENCES]
    assert names == sorted(names, key=str.casefold)
    assert all(re.fullmatch(r"\d{4}|undated", each.year) for each in REFERENCES)


def test_the_documents_with_mistakes_are_references() -> None:
    titles = {each.title.casefold() for each in REFERENCES}
    assert {module.DOCUMENT.title.casefold() for module in MODULES} <= titles


def test_an_author_is_cited_in_a_source_alone() -> None:
    """A paper by "et al." outside of a `Source:` would be found by nobody."""
    for path, text in MODULE_TEXTS.items():
        named = sum(source.count("et al.") for source in sources(text))
        # A line may break between the two words.
        assert len(re.findall(r"\bet\W+al\.", text)) == named, path


def test_the_notes_are_no_citation() -> None:
    for path, text in MODULE_TEXTS.items():
        assert not any(re.match("the notes|notes", each, re.IGNORECASE) for each in sources(text))
        if path.parts[0] not in PRINTERS:
            assert not re.search(r"\bthe notes\b", text, re.IGNORECASE), path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '"""y = x.\n\nSource: A, B (2001); C, D\n(2002), section 3.\n"""\nx = 1\n',
            ["A, B (2001)", "C, D (2002), section 3"],
        ),
        ('    """Source: A, B (2001)."""\n    x = 1\n', ["A, B (2001)"]),
        ('    """y. Source: A, B\n    (2001).\n    """\n', ["A, B (2001)"]),
        ("    // Source: A, B\n    // (2001).\n    int x;\n", ["A, B (2001)"]),
        ("# Source: A, B\n# (2001).\nx = 1\n", ["A, B (2001)"]),
        ('fields = {"Source:": ""}\n', []),
    ],
)
def test_a_source_ends_where_its_paragraph_ends(text: str, found: list[str]) -> None:
    assert list(sources(text)) == found


def test_an_unknown_source_and_an_unused_reference_are_named() -> None:
    unused, *_ = REFERENCES
    said = faults([unused], {"X, Unheard of (1900), section 2": ["ops/x.py"]})
    assert len(said) == 2
    assert "ops/x.py" in said[0]
    assert unused.citation in said[1]
