"""The pages of docs that show commands, followed as a reader would."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import pages

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    name: pages.blocks((DOCS / f"{name}.md").read_text("utf-8"))
    for name in (
        "command-line",
        "course",
        "find-the-bug",
        "layers",
        "limits",
        "print-your-notes",
        "scikit-learn",
    )
}
SECTIONS = list(
    dict.fromkeys(
        (name, block.section)
        for name, blocks in PAGES.items()
        for block in blocks
        if block.kind == "console"
    )
)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "section"), SECTIONS)
def test_a_section_shows_what_is_printed(page, section, tmp_path):
    if section == "PyTorch and JAX":
        pytest.importorskip("torch")
    if page == "scikit-learn":
        pytest.importorskip("sklearn")
    blocks = PAGES[page]
    last = max(i for i, block in enumerate(blocks) if block.section == section)
    for block in blocks[: last + 1]:
        if block.kind != "console":
            pages.write(block, tmp_path)
        elif block.section == section:
            printed = pages.run(block.command, tmp_path)
            assert pages.shows(block.output, printed), f"$ {block.command}\n{printed}"
