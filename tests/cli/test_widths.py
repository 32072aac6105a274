"""Tables and progress as terminals of several widths show them, and as a pipe gets them."""

from __future__ import annotations

import re
import sys
import time
from types import SimpleNamespace

import pytest

from handgrad.cli import tables
from handgrad.data.table import load_csv
from handgrad.training.progress import Bar, LineDisplay
from tests.data.people import people

EPOCH = {
    "epoch": 12,
    "loss": 0.3188,
    "accuracy": 0.8705,
    "validation_loss": 0.5656,
    "validation_accuracy": 0.7887,
    "examples_per_second": 533261.0,
}

BARS = {
    40: ("12/60 ━━━━━      loss 0.3188  16:10 left", "epoch 12/60  loss 0.3188"),
    60: (
        "epoch 12/60 ━━━━╸     loss 0.3188  50 examples/s  16:10 left",
        "epoch 12/60  loss 0.3188  validation loss 0.5656",
    ),
    80: (
        "epoch 12/60 ━━━━━╸      loss 0.3188  accuracy 87.05 %  50 examples/s  16:10 left",
        "epoch 12/60  loss 0.3188  accuracy  87.05 %  validation loss 0.5656",
    ),
    120: (
        "epoch 12/60 ━━━━━━━━━━━━━━               loss 0.3188  accuracy 87.05 %  50 examples/s  "
        "16:10 left",
        "epoch 12/60  loss 0.3188  accuracy  87.05 %  validation loss 0.5656  "
        "validation accuracy  78.87 %  533,261 examples/s",
    ),
}


def plain(text: str) -> list[str]:
    """The lines without their colours."""
    return [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()]


@pytest.mark.parametrize("width", BARS)
def test_progress_keeps_loss_and_time_left(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(time, "perf_counter", lambda: 10.0)
    bar = Bar(60)
    bar.pace._began = 0.0
    bar.start(11, 0, 1000)
    bar.update(10.0, 500, 0.31884, 0.8705)
    shown = bar._progress.console
    with shown.capture() as captured:
        shown.print(bar._progress.get_renderable())
    expected, line = BARS[width]
    assert captured.get().rstrip("\n") == expected
    assert len(expected) <= width
    capsys.readouterr()
    bar.end_epoch(EPOCH)
    bar.close()
    assert line in capsys.readouterr().out.splitlines()
    assert len(line) <= width


def test_long_runs_fit_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(time, "perf_counter", lambda: 10.0)
    bar = Bar(2000)
    bar.pace._began = 0.0
    bar.start(1099, 0, 60_000)
    bar.update(10.0, 64 * 100, 12.5, 0.5)
    with bar._progress.console.capture() as captured:
        bar._progress.console.print(bar._progress.get_renderable())
    bar.close()
    (line,) = captured.get().splitlines()
    assert line.startswith("1100/2000 ")
    assert line.endswith(" loss 12.5000  23:27:39 left")


def test_a_pipe_gets_whole_lines(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(time, "perf_counter", lambda: 10.0)
    lines = LineDisplay(60)
    lines.pace._began = 0.0
    lines.start(11, 0, 1000)
    lines.update(10.0, 500, 0.31884, 0.8705)
    lines.end_epoch(EPOCH)
    assert capsys.readouterr().out.splitlines() == [
        "epoch 12/60  500/1,000  loss 0.3188  accuracy 87.05 %  50 examples/s  16:10 left",
        BARS[120][1],
    ]


PLAN = {
    40: """\
target: outcome, 2 classes: no, yes
id  left out
  how used: a running number
who  left out
  how used: a different text in nearly
  each row
age  number
  missing: 27; how used: number, 39
  where missing, and whether it is
  missing
city  category
  how used: one of 3
""",
    120: """\
target: outcome, 2 classes: no, yes
column  kind      missing  how used
id      left out           a running number
who     left out           a different text in nearly each row
age     number    27       number, 39 where missing, and whether it is missing
city    category           one of 3
""",
}


@pytest.mark.parametrize("width", [40, 60, 80, 120, None])
def test_the_plan_of_a_table_follows_the_terminal(monkeypatch, capsys, tmp_path, width):
    data = load_csv("people", people(tmp_path / "p.csv", 200), target="outcome")
    columns = SimpleNamespace(columns=data.encoding.columns[:4])
    few = SimpleNamespace(target="outcome", note="", classes=data.classes, encoding=columns)
    monkeypatch.setenv("COLUMNS", str(width or 30))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: width is not None, raising=False)
    tables.print_plan(few)
    found = plain(capsys.readouterr().out)
    assert max(map(len, found)) <= (width or 100)
    text = "\n".join(found) + "\n"
    expected = PLAN[40 if width in (40, 60) else 120]
    if width == 60:  # the same words in fewer lines
        text, expected = (re.sub(r"\s+", " ", each) for each in (text, expected))
    assert text == expected


@pytest.mark.parametrize("width", [40, 60, None])
def test_a_small_table_needs_no_wide_terminal(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width or 30))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: width is not None, raising=False)
    columns = ("class", "examples", "precision", "recall", "F1")
    tables.print_table(columns, [["ok", "572", "0.958", "0.991", "0.974"]])
    found = plain(capsys.readouterr().out)
    if width == 40:
        assert found == ["ok  572", "  precision: 0.958; recall: 0.991; F1:", "  0.974"]
    else:
        assert found == [
            "class  examples  precision  recall  F1",
            "ok     572       0.958      0.991   0.974",
        ]
