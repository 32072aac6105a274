"""The dispatch is in two parts: settings, and what decides by them. The first imports no op."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from handgrad import dispatch

FOLDER = Path(dispatch.__file__).parent
LEAVES = {"handgrad", "handgrad.arrays", "handgrad.errors", "handgrad.escaping"}
SETTINGS = {"handgrad", "handgrad.errors"} | {
    f"handgrad.dispatch.{name}" for name in ("cores", "cpu_caches", "values")
}


def imported(name: str) -> set[str]:
    """The modules of handgrad that a file of the dispatch imports."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {module for module in found if module and module.startswith("handgrad")}


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("settings", SETTINGS), ("cores", LEAVES), ("cpu_caches", LEAVES), ("values", LEAVES)],
)
def test_settings_depend_on_nothing_that_dispatches(name: str, allowed: set[str]) -> None:
    assert imported(name) <= allowed


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_the_dispatch_imports_no_op_and_no_layer(name: str) -> None:
    above = ("handgrad.ops", "handgrad.layers", "handgrad.models", "handgrad.training")
    assert not [module for module in imported(name) if module.startswith(above)]
