from __future__ import annotations

import pytest

from handgrad.exercises import NAMES, exercise


def test_the_course_is_listed(handgrad):
    lines = handgrad("exercises").stdout.splitlines()
    assert len(lines) == len(NAMES)
    assert lines[2] == f" 3  {exercise(3).title}"


def test_a_task_is_printed(handgrad):
    result = handgrad("exercise", 3)
    assert result.exit_code == 0
    assert exercise(3).task in result.stdout
    assert exercise(3).forward in result.stdout
    assert "returns dx, dweight, dbias" in result.stdout
    assert "dy.T @ x" not in result.stdout


def test_hints_come_one_by_one(handgrad):
    assert handgrad("exercise", 1, "--hint").stdout.count("- ") == 1
    assert handgrad("exercise", 1, "--hint", "--hint").stdout.count("- ") == 2


def test_a_solution_is_printed(handgrad):
    result = handgrad("exercise", 7, "--solution")
    assert exercise(7).solution in result.stdout
    assert "handgrad/ops/layer_norm.py" in result.stdout


def test_from_the_file_to_start_from_to_the_answer(handgrad, tmp_path):
    file = tmp_path / "mine.py"
    assert handgrad("exercise", 1, "--start", file).exit_code == 0
    unwritten = handgrad("exercise", 1, file)
    assert unwritten.exit_code == 1
    assert "backward is not written yet" in unwritten.stdout
    raised = 'raise NotImplementedError("backward is not written yet")'
    start = file.read_text("utf-8")

    file.write_text(start.replace(raised, "print('here')\n    return dy"), "utf-8")
    wrong = handgrad("exercise", 1, file)
    assert wrong.exit_code == 1
    assert "is forgotten" in wrong.stdout
    assert "handgrad exercise 1 --hint" in wrong.stdout
    assert "here" not in wrong.stdout

    file.write_text(start.replace(raised, "return dy * (cache > 0)"), "utf-8")
    right = handgrad("exercise", 1, file)
    assert right.exit_code == 0, right.output
    assert "every gradient is right" in right.stdout
    assert "Next: handgrad exercise 2" in right.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((11,), "allowed: 1 to 10"),
        ((1, "mine.txt"), "mine.txt is no Python file"),
        ((1, "absent.py"), "absent.py does not exist"),
        ((1, "--start", "mine.txt"), "mine.txt: found no Python file"),
        ((1, "--start", "there.py"), "there.py exists; allowed: a new file"),
        ((1, "there.py"), "has no functions forward and backward"),
    ],
)
def test_a_wrong_argument_is_refused(arguments, sentence, refused, tmp_path, monkeypatch):
    (tmp_path / "there.py").write_text("", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert sentence in refused("exercise", *arguments)
