"""The work of a search: counted, shared, and the same on every machine."""

import time
from pathlib import Path

import pytest

from handgrad.checking import work as counting
from handgrad.checking.work import Work
from handgrad.exercises import NAMES, exercise


def test_work_is_over_when_its_microseconds_are_taken() -> None:
    work = Work(0.001)
    work.take(999)
    assert not work.over()
    work.take(0, lines=5)
    assert work.over()
    work = Work(0.001)
    work.take(999, elements=20)
    assert work.over()


def test_a_share_is_one_of_what_is_left() -> None:
    work = Work(0.001)
    work.take(200)
    with work.hurried(4):
        work.take(199)
        assert not work.over()
        work.take(1)
        assert work.over()
    assert not work.over()
    work.take(600)
    assert work.over()


def test_a_slow_machine_does_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    work, now = Work(1.0), time.process_time()
    monkeypatch.setattr(counting.time, "process_time", lambda: now + 9.0)
    assert not work.over()


def test_work_inside_a_library_ends_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    work, now = Work(1.0), time.process_time()
    monkeypatch.setattr(counting.time, "process_time", lambda: now + 11.0)
    assert work.over()


@pytest.mark.slow
def test_a_report_is_the_same_on_a_machine_of_a_third_of_the_speed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen, file = exercise(NAMES.index("rnn") + 1), tmp_path / "answer.py"
    unwritten = chosen.start[: chosen.start.index("def backward")]
    solution = chosen.solution.replace("dh = da @ weight_hh", "dh = 0.9 * da.cumsum(1)")
    file.write_text(unwritten + solution, "utf-8")
    usual = str(chosen.examine(file))
    real = time.process_time
    monkeypatch.setattr(counting.time, "process_time", lambda: 3.0 * real())
    assert str(chosen.examine(file)) == usual
