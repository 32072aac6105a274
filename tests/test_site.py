"""The site: its navigation, and docstrings as reStructuredText. `python -m docs.site` builds it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from docs.site import alive, versions
from docs.site.docstrings import converted, escaped
from docs.site.pages import contents, packages_of_handgrad
from tests.browser import new_page, served

SITE = Path(versions.__file__).parent
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


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A site of version 0.11.0 with two earlier ones, and a folder that is none."""
    for folder in (".", "0.9.0", "0.10.0", "alive"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "index.html").touch()
    versions.write(tmp_path, "0.11.0")
    return tmp_path


def test_every_version_lists_all_the_newest_first(kept: Path) -> None:
    newest = json.loads((kept / "versions.json").read_text("utf-8"))
    assert list(newest.items()) == [("0.11.0", "./"), ("0.10.0", "0.10.0/"), ("0.9.0", "0.9.0/")]
    older = json.loads((kept / "0.9.0/versions.json").read_text("utf-8"))
    assert older == {"0.11.0": "../", "0.10.0": "../0.10.0/", "0.9.0": "./"}
    assert not (kept / "alive/versions.json").exists()


def test_the_page_of_versions_leads_to_each_from_a_file(kept: Path) -> None:
    for folder in (kept, kept / "0.9.0"):
        links = re.findall(r'href="([^"]+)"', (folder / "versions.html").read_text("utf-8"))
        assert len(links) == 3
        assert all((folder / link).is_file() for link in links)


def test_the_version_that_is_built_is_not_listed_twice(tmp_path: Path) -> None:
    (tmp_path / "0.2.0").mkdir()
    (tmp_path / "0.2.0/index.html").touch()
    versions.write(tmp_path, "0.2.0")
    assert json.loads((tmp_path / "versions.json").read_text("utf-8")) == {"0.2.0": "./"}


#: A page as the site has them, as far as the choice of versions reads it.
PAGE = """<!DOCTYPE html><html data-content_root="../">
<p class="versions"><a href="../versions.html">Version</a></p>
<script src="../versions.js" defer></script></html>"""


@pytest.mark.slow
def test_a_choice_leads_to_the_same_page_of_another_version(kept: Path) -> None:
    for folder in (kept, kept / "0.9.0", kept / "0.10.0"):
        shutil.copy(SITE / "static" / "versions.js", folder)
        (folder / "docs").mkdir()
        (folder / "docs" / "page.html").write_text(PAGE, "utf-8")
    (kept / "0.10.0" / "docs" / "page.html").unlink()
    with served(kept) as address, new_page() as page:
        page.goto(f"{address}docs/page.html")
        choice = page.get_by_label("Version")
        assert choice.locator("option:checked").inner_text() == "Version 0.11.0"
        choice.select_option("Version 0.9.0")
        page.wait_for_url(f"{address}0.9.0/docs/page.html")
        page.get_by_label("Version").select_option("Version 0.10.0")
        page.wait_for_url(f"{address}0.10.0/")
        page.goto((kept / "docs" / "page.html").as_uri())
        page.click(".versions a")
        page.click("text=0.9.0")
        assert page.url == (kept / "0.9.0" / "index.html").as_uri()
