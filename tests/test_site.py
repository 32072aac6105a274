"""The site: its navigation, and docstrings as reStructuredText. `python -m docs.site` builds it."""

from __future__ import annotations

import re
from pathlib import Path

from docs.site import alive
from docs.site.docstrings import converted, escaped
from docs.site.pages import contents, packages_of_handgrad

INDEX = Path(__file__).parents[1] / "docs" / "index.md"


def test_every_section_of_the_index_is_in_the_navigation() -> None:
    sections = re.findall(r"^## (.*)$", INDEX.read_text("utf-8"), re.MULTILINE)
    captions = re.findall(r"^:caption: (.*)$", contents(), re.MULTILINE)
    assert captions[: len(sections)] == sections


def test_every_page_is_in_the_navigation_once() -> None:
    pages = re.findall(r"^.*<(.*)>$|^(docs/[\w-]+)$", contents(), re.MULTILINE)
    named = [one or other for one, other in pages]
    assert len(named) == len(set(named))
    found = {f"docs/{path.relative_to(INDEX.parent)}" for path in INDEX.parent.glob("*.md")}
    assert {page.removesuffix(".md") for page in found} <= set(named)


def test_the_reference_has_every_public_module() -> None:
    found = packages_of_handgrad()
    assert {"handgrad", "layers", "losses", "ops", "optimizers", "errors"} <= set(found)
    assert "Dense" in found["layers"]
    assert "check" in found["handgrad"]


def test_only_backticks_mean_something_in_a_docstring() -> None:
    assert escaped("a * b_c |x| of `y_1`.") == r"a \* b\_c \|x\| of \ ``y_1``\ ."
    assert escaped("`two\nlines`") == "\\ ``two lines``\\ "


def test_aligned_formulas_stay_lines() -> None:
    lines = ["One line.", "", "Forward:  y = 2x", "Backward: dx = 2dy,", "          twice"]
    found = list(converted(lines))
    assert found[:2] == ["One line.", ""]
    assert found[2] == "| Forward:  y = 2x"
    assert found[4].startswith("| \N{NO-BREAK SPACE}")


def test_a_list_is_parted_from_its_sentence() -> None:
    assert list(converted(["These:", "- one", "- two"])) == ["These:", "", "- one", "- two", ""]


def test_the_gallery_has_eight_pages_that_are_alive() -> None:
    assert len(alive.PAGES) == 8
    text = alive.page("layer_norm")
    assert 'id="handgrad-story"' in text
    assert len(text) < 700_000
    assert all(f'"alive/{target}.html"' in alive.section() for target in alive.PAGES)
