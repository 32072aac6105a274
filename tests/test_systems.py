"""docs/systems.md: every name in its tables exists, and so does every witness."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import handgrad as hg
from handgrad import recipes
from handgrad.cli.app import app
from handgrad.equations.worked import WORKED
from handgrad.ops import OPS
from tests.rows import rows

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/systems.md").read_text("utf-8")
COLUMNS = "| source | in handgrad | witness |"

COMMANDS = {each.name for each in app.registered_commands}
#: The subjects of a command; those of other commands are not known here.
SUBJECTS = {
    "train": {*recipes.names()},
    "check": {*OPS},
    "notes": {*OPS, *WORKED, *recipes.names()},
}


class Row(NamedTuple):
    section: str
    system: str
    source: str
    names: str
    witnesses: str


def rows_of(page: str) -> Iterator[Row]:
    """The rows of every table, with the heading that each stands under."""
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        section, _, text = part.partition("\n")
        for line in re.findall(r"^\| (.*) \|$", text, re.MULTILINE):
            cells = [cell.strip() for cell in line.split(" | ")]
            if not cells[0].startswith("---") and not line.endswith("| witness"):
                yield Row(section, *cells)


def spans(text: str) -> list[str]:
    """The spans that are marked as code."""
    return re.findall(r"`([^`]+)`", text)


def found(name: str) -> Any:
    """The object of a dotted name that begins with hg."""
    first, *others = name.split(".")
    assert first == "hg", f"{name} does not begin with hg"
    value: Any = hg
    for other in others:
        value = getattr(value, other)
    return value


@cache
def functions(path: str) -> frozenset[str]:
    """The functions at the top of a test's file, which is read and not run."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def fault(witness: str) -> str | None:
    """A sentence on a witness that does not exist, or None."""
    path, colons, name = witness.partition("::")
    if colons:
        if not (ROOT / path).is_file():
            return f"{path} is no file"
        if not name.startswith("test_") or name not in functions(path):
            return f"{path} has no test {name}"
        return None
    program, *words = shlex.split(witness)
    if program == "handgrad":
        command, subject = words[0], words[1]
        if command not in COMMANDS or subject not in SUBJECTS[command]:
            return f"{witness} is no command"
        return None
    if program == "python" and words[0] == "-m":
        return None if importlib.util.find_spec(words[1]) else f"{words[1]} is no module"
    if program == "python":
        return None if (ROOT / words[0]).is_file() else f"{words[0]} is no file"
    return f"{witness} is neither a test nor a command"


ROWS = list(rows_of(PAGE))


@rows("row", ROWS, ids=lambda row: row.system[:40])
def test_a_row_names_what_exists(row: Row) -> None:
    assert spans(row.names), f"{row.system}: nothing in handgrad is named"
    for name in spans(row.names):
        assert found(name) is not None
    assert spans(row.witnesses), f"{row.system}: there is no witness"
    assert [each for each in map(fault, spans(row.witnesses)) if each is not None] == []


def test_names_in_the_text_exist() -> None:
    introduction = PAGE.partition("\n## ")[0]
    assert [each for each in map(fault, spans(introduction)) if each is not None] == []


def test_every_section_has_rows() -> None:
    sections = list(dict.fromkeys(row.section for row in ROWS))
    assert [section[0] for section in sections] == [*"ABCDEFGHIJ", "N"]
    assert PAGE.count(COLUMNS) == len(sections)


@pytest.mark.parametrize(
    ("witness", "message"),
    [
        ("tests/nothing.py::test_a", "tests/nothing.py is no file"),
        ("tests/test_systems.py::test_a", "tests/test_systems.py has no test test_a"),
        ("tests/test_systems.py::fault", "tests/test_systems.py has no test fault"),
        ("handgrad train nothing", "handgrad train nothing is no command"),
        ("python -m docs.nothing", "docs.nothing is no module"),
        ("python examples/nothing.py", "examples/nothing.py is no file"),
        ("make", "make is neither a test nor a command"),
    ],
)
def test_a_witness_that_does_not_exist_is_noticed(witness: str, message: str) -> None:
    assert fault(witness) == message


def test_a_name_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(AttributeError):
        found("hg.ops.lstm.nothing")
