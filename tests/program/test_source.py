"""Functions without a file: given to `python -c`, typed at the prompt, made by exec."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError

_PROGRAM = """
import numpy as np, handgrad as hg

def forward(x):
    y = x
    for i in range(3):
        y = np.tanh(y) * x
    return y, x

def backward(dy, x):
    return dy * x

def half(dy, x):
    y = 0.5 * x
    return y * dy

x = np.random.default_rng(0).standard_normal((3, 4))
print(hg.check((forward, backward), x).ok)
print(hg.derive(lambda x: np.tanh(x) ** 2, x=("N", "D")).backward_source)
print(hg.notes((lambda_free, half), x).to_latex())
""".replace("lambda_free", "square")
_SQUARE = "def square(x):\n    y = 0.25 * x * x\n    return y, x\n"


def ran(*arguments: str, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *arguments], input=text.encode(), capture_output=True, check=False
    )
    return done.stdout.decode() + done.stderr.decode()


def test_a_program_of_the_command_line_has_its_source() -> None:
    found = ran("-c", _SQUARE + _PROGRAM, "-c", "more")
    assert found.startswith("False\n")
    assert "tanh" in found
    assert "Traceback" not in found, found
    assert r"\documentclass" in found


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the prompt keeps what is typed from there")
def test_what_was_typed_is_checked_and_derived_and_notes_say_what_to_do() -> None:
    found = ran("-", text=_SQUARE + _PROGRAM)
    assert found.startswith("False\n")
    assert "tanh" in found
    assert found.rstrip().endswith(
        "ArgumentError: notes: the source of square cannot be read, because it was typed at "
        "Python's prompt; allowed: functions in files; write it to a file, such as mine.py, and "
        "import it from there"
    )


def test_what_exec_made_is_said_to_be_that() -> None:
    made: dict[str, object] = {}
    exec(_SQUARE, made)
    with pytest.raises(ArgumentError, match="the source of square cannot be read, because exec"):
        hg.notes((made["square"], lambda dy, x: 0.5 * x * dy), np.ones((2, 3)))
    assert hg.check((made["square"], lambda dy, x: 0.5 * x * dy), np.ones((2, 3))).ok


def test_what_python_did_not_compile_is_no_function() -> None:
    with pytest.raises(ArgumentError, match="notes: tanh is no function of Python; allowed: one"):
        hg.notes((np.tanh, lambda dy, cache: dy), np.ones(3))
