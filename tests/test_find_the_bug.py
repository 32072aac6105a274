"""docs/find-the-bug.md, followed as a reader would."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import pages

PAGE = pages.blocks((Path(__file__).parents[1] / "docs/find-the-bug.md").read_text("utf-8"))
SECTIONS = list(dict.fromkeys(block.section for block in PAGE if block.kind == "console"))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_shows_what_is_printed(section, tmp_path):
    if section == "PyTorch and JAX":
        pytest.importorskip("torch")
    last = max(i for i, block in enumerate(PAGE) if block.section == section)
    for block in PAGE[: last + 1]:
        if block.kind != "console":
            pages.write(block, tmp_path)
        elif block.section == section:
            printed = pages.run(block.command, tmp_path)
            assert pages.shows(block.output, printed), f"$ {block.command}\n{printed}"
