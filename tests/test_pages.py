"""The pages of documentation, followed as a reader would: what they show is what is printed."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests import pages
from tests.rows import rows

ROOT = Path(__file__).parents[1]
#: Pages that are written from what was run, docs.mistakes and docs.derived, or by the site.
WRITTEN = {ROOT / "docs" / name for name in ("mistakes.md", "derived.md", "api", "gallery")}
PAGES = {
    path.relative_to(ROOT).as_posix(): pages.blocks(path.read_text("utf-8"))
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    if not WRITTEN & {path, *path.parents}
}
#: test_own_data.py runs this one, with a file of the reader's.
ELSEWHERE = {"docs/own-data.md"}
TYPED = [
    name
    for name, blocks in PAGES.items()
    if name not in ELSEWHERE and any(block.is_typed for block in blocks)
]
#: README.md shows the end of a command's output; test_readme.py compares it with its page.
SECTIONS = list(
    dict.fromkeys(
        (name, block.section)
        for name, blocks in PAGES.items()
        for block in blocks
        if block.kind == "console" and name != "README.md"
    )
)


def skip_without_packages(block: pages.Block) -> None:
    """Skip the test where a package is not installed that the tests do without."""
    for package in re.findall(
        r"^(?:from|import) .*\b(jax|onnxruntime|sklearn|tokenizers|torch)\b",
        block.text,
        re.MULTILINE,
    ):
        pytest.importorskip(package)


@pytest.mark.parametrize("page", TYPED)
def test_the_python_of_a_page_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    namespace = {"__name__": "page"}
    blocks = PAGES[page]
    printed = None
    for block in blocks:
        if block.is_typed:
            skip_without_packages(block)
            printed = pages.typed(block, namespace)
        elif block.kind == "text":
            assert printed is not None, "no Python before this output"
            assert pages.shows(block.text, printed), f"{block.section}: {printed}"
        elif block.name is not None:
            pages.write(block, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "section"), SECTIONS)
def test_a_section_shows_what_its_commands_print(page, section, tmp_path):
    blocks = PAGES[page]
    for block in blocks:
        if block.section == section:
            skip_without_packages(block)
    last = max(i for i, block in enumerate(blocks) if block.section == section)
    for block in blocks[: last + 1]:
        if block.name is not None:
            pages.write(block, tmp_path)
        elif block.kind == "console" and block.section == section:
            printed = pages.run(block.command, tmp_path)
            assert pages.shows(block.output, printed), f"$ {block.command}\n{printed}"


@rows("page", PAGES)
def test_source_that_a_page_shows_is_that_of_its_file(page):
    for block in PAGES[page]:
        if block.source is not None:
            assert block.text in (ROOT / block.source).read_text("utf-8")


@rows("page", PAGES)
def test_an_output_follows_the_python_that_prints_it(page):
    for before, block in pairwise(PAGES[page]):
        assert block.kind != "text" or before.is_typed, block.text
