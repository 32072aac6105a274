"""Checks where people work: marks in files, changed files, GitHub, JUnit, pages, watching."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import Result

from handgrad.cli.marked import found_in
from handgrad.cli.results import line_of
from handgrad.cli.watching import watch

Run = Callable[..., Result]
Refused = Callable[..., str]

AFFINE = """\
import numpy as np


# A layer without a bias.
# handgrad: check --shape x=5,3 --shape w=3,4
def affine_forward(x, w):
    return x @ w, (x, w)


def affine_backward(dy, cache):
    x, w = cache
    dx = dy @ w.T
    return dx, x.T @ dy


# handgrad: check --set by=3.0 --shape x=4
class Scale:
    def __init__(self, by):
        self.by = by

    def forward(self, x):
        return x * self.by

    def backward(self, dy):
        return dy * self.by
"""
WRONG = AFFINE.replace("dx = dy @ w.T", "dx = -dy @ w.T")
UNMARKED = "def relu_forward(x):\n    return x, x\n\n\ndef relu_backward(dy, x):\n    return dy\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with a committed `net/affine.py`, as the current folder."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "net").mkdir()
    (tmp_path / "net/affine.py").write_text(AFFINE)
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("config", "user.email", "a@example.com"),
        ("config", "user.name", "A"),
        ("add", "."),
        ("commit", "--quiet", "--message", "one"),
    ):
        subprocess.run(["git", *command], check=True, capture_output=True)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(vars(sys.modules[name]).get("__file__")):
            del sys.modules[name]


def test_a_file_of_marks_is_checked_as_they_say(handgrad: Run, project: Path) -> None:
    result = handgrad("check", "net/affine.py")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "✓ net/affine.py:affine_forward: every gradient is right",
        "✓ net/affine.py:Scale: every gradient is right",
    ]


def test_nothing_changed(handgrad: Run, project: Path) -> None:
    result = handgrad("check", "--changed")
    assert result.exit_code == 0, result.output
    assert result.stdout == "i nothing is marked in 0 files\n"


@pytest.mark.parametrize("committed", [False, True])
def test_what_changed_is_checked(handgrad: Run, project: Path, committed: bool) -> None:
    (project / "net/affine.py").write_text(WRONG)
    (project / "net/relu.py").write_text(UNMARKED)
    (project / "broken.py").write_text("def f(:\n")
    since = ()
    if committed:
        subprocess.run(["git", "checkout", "--quiet", "-b", "mine"], check=True)
        subprocess.run(["git", "commit", "--quiet", "--all", "--message", "two"], check=True)
        assert "nothing" not in handgrad("check", "--changed").stdout.splitlines()[0]
        since = ("--since", "main")
    result = handgrad("check", "--changed", *since, "--junit", "out.xml")
    assert result.exit_code == 1, result.output
    assert "✗ dx: term dy has the wrong sign" in result.stdout
    assert "✓ net/affine.py:Scale: every gradient is right" in result.stdout
    assert "i net/relu.py:relu_forward has a backward and no inputs; allowed: a line" in (
        result.stdout
    )
    suite = ElementTree.parse(project / "out.xml").getroot()
    assert suite.attrib == {
        "name": "handgrad check",
        "tests": "2",
        "failures": "1",
        "errors": "0",
    }
    first, second = suite
    assert first.attrib == {"classname": "net/affine.py", "name": "affine_forward"}
    assert "wrong sign" in first[0].attrib["message"]
    assert "every gradient is right" in (second[0].text or "")


def test_from_a_folder_below(handgrad: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "net/affine.py").write_text(WRONG)
    monkeypatch.chdir(project / "net")
    result = handgrad("check", "--changed")
    assert result.exit_code == 1
    assert "✓ affine.py:Scale" in result.stdout


def test_github_gets_the_line(
    handgrad: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "net/affine.py").write_text(WRONG)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = handgrad("check", "--changed")
    commands = [line for line in result.stdout.splitlines() if line.startswith("::")]
    assert len(commands) == 1
    place, _, message = commands[0].removeprefix("::error ").partition("::")
    assert place.split(",")[0] == "file=net/affine.py"
    line = int(place.split(",")[1].removeprefix("line="))
    assert 10 <= line <= 13
    assert message.startswith("dx: term dy has the wrong sign")


def test_a_mark_that_is_none_does_not_end_the_others(handgrad: Run, project: Path) -> None:
    text = AFFINE.replace("--shape x=5,3", "--shap x=5,3", 1)
    (project / "net/affine.py").write_text(text)
    result = handgrad("check", "--changed", "--junit", "out.xml")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("handgrad: check: net/affine.py:affine_forward is marked with")
    assert "✓ net/affine.py:Scale" in result.stdout
    assert ElementTree.parse(project / "out.xml").getroot().attrib["errors"] == "1"


def test_a_page_has_pictures_and_the_line(handgrad: Run, project: Path) -> None:
    (project / "net/affine.py").write_text(WRONG)
    shapes = ("--shape", "x=5,3", "--shape", "w=3,4")
    result = handgrad("check", "net/affine.py:affine_forward", *shapes, "-o", "page.html")
    assert result.exit_code == 1, result.output
    page = (project / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert page.count("<rect") == 3 * 5 * 3
    assert "dx, of shape (5, 3)" in page
    assert "<mark>" in page
    assert "wrong sign" in page


def test_a_page_of_a_right_op(handgrad: Run, project: Path) -> None:
    assert handgrad("check", "tanh", "-o", "page.html", "--junit", "out.xml").exit_code == 0
    assert "<svg" not in (project / "page.html").read_text(encoding="utf-8")
    assert ElementTree.parse(project / "out.xml").getroot().attrib["failures"] == "0"


def test_a_change_is_seen(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[list[str]] = []

    def once(command: list[str], **_: object) -> None:
        runs.append(command[3:])

    def saves(_: float) -> None:
        (project / "net/affine.py").write_text(f"{WRONG}\n# {len(runs)}\n")

    monkeypatch.setattr(subprocess, "run", once)
    monkeypatch.setattr("time.sleep", saves)
    watch(project, ["check", "net/affine.py"], rounds=3)
    assert runs == [["check", "net/affine.py"]] * 3


def test_a_fault_without_a_line_is_at_its_backward(project: Path) -> None:
    file = project / "net/affine.py"
    assert line_of(file, "affine_backward") == 10
    assert line_of(file, "Scale") == 24
    assert line_of(file, "nowhere") is None


def test_marks_are_read_above_decorators(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(
        "# handgrad: check --shape x=3\n# and why\n@staticmethod\ndef f(x):\n    return x\n\n"
        "# handgrad: check\n\ndef g(x):\n    return x\n"
    )
    (found,) = found_in(file)
    assert (found.name, found.options) == ("f", "--shape x=3")


def test_json_of_what_is_marked(handgrad: Run, project: Path) -> None:
    (project / "net/affine.py").write_text(WRONG.replace("--set by", "--sat by"))
    result = handgrad("check", "--changed", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert list(found) == ["net/affine.py:affine_forward", "net/affine.py:Scale"]
    assert found["net/affine.py:affine_forward"]["verdict"] == "wrong"
    assert "is marked with" in found["net/affine.py:Scale"]["error"]


def test_json_of_a_named_target_is_as_before(handgrad: Run, project: Path) -> None:
    arguments = ("net/affine.py:Scale", "--set", "by=2", "--shape", "x=4", "--json")
    assert json.loads(handgrad("check", *arguments).stdout)["verdict"] == "right"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no target is given; allowed: one, or --changed"),
        (["tanh", "--changed"], "--changed is given with a target"),
        (["--changed", "--shape", "x=3"], "--changed is given with a target"),
        (["tanh", "--since", "main"], "--since is given without --changed"),
        (["--changed", "--since", "nowhere"], 'Git says "fatal: '),
        (["--changed", "-o", "a.html"], "--out is given with --changed"),
        (["net/affine.py", "--watch"], "--watch is given with net/affine.py"),
        (["all", "--junit", "a.xml"], "--junit is given with all"),
        (["tanh", "-o", "a.pdf"], "--out a.pdf; allowed: a file in .html"),
        (["tanh", "-o", "nowhere/a.html"], "nowhere/a.html cannot be written"),
        (["tanh", "--junit", "nowhere/a.xml"], "nowhere/a.xml cannot be written"),
    ],
)
def test_misuse_is_one_sentence(
    refused: Refused, project: Path, arguments: list[str], message: str
) -> None:
    assert message in refused("check", *arguments)
