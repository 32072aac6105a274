"""Code of the user's that ends the program or raises oddly, and files of the user's as output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

ENDS = """
def forward(x):
    raise SystemExit(5)
"""
ODD = """
class Odd(BaseException):
    pass

raise Odd("a" + chr(27) + "[31m")
"""
MUTE = """
class Mute:
    def __repr__(self):
        raise RuntimeError("no")

g = Mute()
"""
FORWARD = """
import numpy as np

def forward(x):
    return np.tanh(x)
"""

Refused = Callable[..., str]
Written = Callable[[str], Path]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    monkeypatch.chdir(tmp_path)

    def write(source: str) -> Path:
        path = tmp_path / f"of_user_{abs(hash(source))}.py"
        path.write_text(source, encoding="utf-8")
        return path

    return write


def test_a_forward_that_ends_the_program_does_not(refused: Refused, mine: Written) -> None:
    assert "SystemExit: 5" in refused("derive", f"{mine(ENDS)}:forward", "--shape", "x=N")


@pytest.mark.parametrize("command", ["check", "derive", "notes"])
def test_an_import_may_raise_what_is_no_exception(
    refused: Refused, mine: Written, command: str
) -> None:
    sentence = refused(command, f"{mine(ODD)}:forward")
    assert "cannot be imported" in sentence
    assert "\x1b" not in sentence


def test_a_target_whose_repr_raises_is_named_as_it_was_given(
    refused: Refused, mine: Written
) -> None:
    assert "no inputs are given for" in refused("check", f"{mine(MUTE)}:g")


def test_derive_does_not_write_over_its_source(
    refused: Refused, mine: Written, tmp_path: Path
) -> None:
    path = mine(FORWARD)
    (tmp_path / "link.py").symlink_to(path)
    for out in (path, tmp_path / "link.py"):
        said = refused("derive", f"{path}:forward", "--shape", "x=N", "--out", out)
        assert "is the file of the forward" in said
    assert path.read_text(encoding="utf-8") == FORWARD


def test_export_writes_over_nothing_else(refused: Refused, tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    assert "no name of an ONNX file" in refused("export", tmp_path, weights)
    assert weights.read_bytes() == b"weights"
