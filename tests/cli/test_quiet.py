"""With --quiet the exit code and the files say everything."""

from __future__ import annotations

import pytest


def test_check_says_it_by_its_exit_code(handgrad, tmp_path):
    result = handgrad("check", "relu", "-q")
    assert (result.exit_code, result.output) == (0, "")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "def forward(x):\n    return 2 * x, x\n\ndef backward(dy, x):\n    return dy\n"
    )
    result = handgrad("check", f"{wrong}:forward,backward", "--shape", "x=3", "--quiet")
    assert (result.exit_code, result.output) == (1, "")


def test_notes_write_their_file(handgrad, tmp_path):
    file = tmp_path / "relu.md"
    result = handgrad("notes", "relu", "-q", "-o", file)
    assert (result.exit_code, result.output) == (0, "")
    assert file.stat().st_size > 100


@pytest.mark.slow
def test_train_leaves_its_folder(handgrad, tmp_path):
    result = handgrad("train", "digits", "--epochs", 1, "-q", "--out", tmp_path / "run")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "run" / "summary.json").exists()


def test_errors_are_said_all_the_same(refused):
    assert "nonsense is no recipe" in refused("train", "nonsense", "-q")
