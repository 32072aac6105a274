"""The notebooks: each runs from top to bottom, and is what is written from its cells."""

from __future__ import annotations

import ast
import json
import linecache
import shutil
from pathlib import Path

import pytest

from docs.notebooks.cells import HERE, SOURCES, cells, notebook


def run(source: Path) -> None:
    """Run the cells in order in one namespace, and show the last value of each as Jupyter does."""
    namespace = {"__name__": "__main__"}
    for number, cell in enumerate(cells(source.read_text("utf-8"))):
        if cell.kind != "code":
            continue
        name = f"{source.stem}, cell {number}.py"
        # Functions of a cell have a source, which the checker and the notes read.
        linecache.cache[name] = (len(cell.text), None, cell.text.splitlines(keepends=True), name)
        tree = ast.parse(cell.text)
        shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), namespace)
        if shown is not None:
            value = eval(compile(ast.Expression(shown.value), name, "eval"), namespace)
            html = getattr(value, "_repr_html_", value.__repr__)()
            assert html


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_notebook_runs(source, tmp_path, monkeypatch):
    if source.stem == "kernel_writers_day" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    monkeypatch.chdir(tmp_path)
    run(source)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_notebook_is_written_from_its_cells(source):
    written = source.with_suffix(".ipynb").read_text("utf-8")
    assert written == notebook(source.read_text("utf-8")), "run python -m docs.notebooks"
    assert json.loads(written)["nbformat"] == 4


def test_every_file_of_cells_is_a_notebook():
    assert {path.stem for path in HERE.glob("[!_]*.py")} - {"cells"} == {p.stem for p in SOURCES}
    assert {path.stem for path in HERE.glob("*.ipynb")} == {path.stem for path in SOURCES}
