"""The notebooks: each runs from top to bottom; the site runs them as Jupyter does."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.nb.py"))


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(notebook, tmp_path, monkeypatch):
    if notebook.name == "kernel_writers_day.nb.py" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(notebook), run_name="__main__")


def test_every_notebook_is_on_their_page():
    listed = re.findall(r"\((notebooks/[^)]+)\)", (DOCS / "notebooks.md").read_text("utf-8"))
    assert sorted(listed) == [path.relative_to(DOCS).as_posix() for path in NOTEBOOKS]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_opens_with_its_title(notebook):
    assert notebook.read_text("utf-8").startswith("# %% [markdown]\n# # ")
