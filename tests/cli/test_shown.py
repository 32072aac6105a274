"""Names from data on their way to a terminal."""

from __future__ import annotations

import csv
import json
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest

from handgrad import cli
from handgrad.streams import Terminal, unescaped_output

HOSTILE = "\x1b]0;owned\x07\r\u202e\x1b[31mx"
SHOWN = r"\x1b]0;owned\x07\r\u202e\x1b[31mx"
#: Bytes of UTF-8 that act on a terminal.
ACTS = (b"\x1b", b"\x07", b"\r", "\u202e".encode(), b"\x9b")


class Stream(TextIOWrapper):
    """A stream that may say that it is a terminal."""

    is_terminal = False

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.fixture
def said(monkeypatch):
    """Runs the command line by its outermost function; both its streams, as bytes."""

    def run(*arguments: object) -> tuple[str, str]:
        streams = {}
        for name in ("stdout", "stderr"):
            streams[name] = BytesIO()
            stream = Stream(streams[name], encoding="utf-8", newline="\n")
            monkeypatch.setattr(sys, name, stream)
        monkeypatch.setattr(sys, "argv", ["handgrad", *map(str, arguments)])
        with pytest.raises(SystemExit):
            cli.main()
        written = {name: stream.getvalue() for name, stream in streams.items()}
        monkeypatch.undo()
        for content in written.values():
            assert not [act for act in ACTS if act in content], content
        return written["stdout"].decode(), written["stderr"].decode()

    return run


@pytest.fixture(scope="module")
def hostile_run(handgrad, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    rows = "".join(f'{i},"{HOSTILE}\n{i % 2}"\n' for i in range(30))
    (folder / "e.csv").write_bytes(f"a,label\n{rows}".encode())
    result = handgrad("train", folder / "e.csv", "--epochs", 1, "--out", folder / "r")
    assert result.exit_code == 0, result.output
    return folder


def test_classes_are_shown(said, hostile_run):
    lines, _ = said("predict", hostile_run / "r", hostile_run / "e.csv")
    assert lines.count("\n") == 30
    assert lines.count(SHOWN + r"\n") == 30
    found, _ = said("predict", hostile_run / "r", hostile_run / "e.csv", "--json")
    names = {each["class"] for record in json.loads(found) for each in record["classes"]}
    assert names <= {f"{HOSTILE}\n0", f"{HOSTILE}\n1"}


def test_a_table_has_them_as_they_are_in_a_file_and_shown_on_a_terminal(
    said, hostile_run, handgrad, monkeypatch
):
    arguments = ("predict", hostile_run / "r", hostile_run / "e.csv", "--csv")
    written = handgrad(*arguments).stdout_bytes
    rows = list(csv.reader(StringIO(written.decode(), newline="")))[1:]
    assert {cell for row in rows for cell in row[1::2]} <= {f"{HOSTILE}\n0", f"{HOSTILE}\n1"}
    assert len(rows) == 30
    monkeypatch.setattr(Stream, "is_terminal", True)
    shown, _ = said(*arguments)
    assert SHOWN in shown


def test_a_page_shows_them(hostile_run):
    page = (hostile_run / "r" / "report.html").read_bytes()
    assert SHOWN.encode() in page
    assert not [act for act in ACTS[:4] if act in page]


def test_columns_files_and_arguments_are_shown(said, tmp_path):
    folder = tmp_path / HOSTILE
    folder.mkdir()
    file = folder / f"{HOSTILE}\nb.csv"
    rows = "".join(f"{i},{i % 2}\n" for i in range(30))
    file.write_bytes(f"x\x1b[31m,label\n{rows}".encode())
    out, error = said("train", file, "--epochs", 1, "--out", folder / "r")
    assert out.startswith(SHOWN + r"\nb: "), error
    _, error = said("predict", folder / "r", folder / "none.csv")
    assert SHOWN in error
    for arguments in ([HOSTILE], ["info", f"--{HOSTILE}"], ["evaluate", HOSTILE]):
        _, error = said(*arguments)
        assert SHOWN in error.replace(r"\x0d", r"\r")  # typer writes this one so


def test_a_stream_shows_and_the_console_colours():
    below = TextIOWrapper(BytesIO(), encoding="ascii", newline="\n")
    stream = Terminal(below, is_lossy=False)
    print("\x1b[31mσ", file=stream, flush=True)
    assert below.buffer.getvalue() == b"\\x1b[31m\\u03c3\n"
    assert not hasattr(stream, "buffer")


def test_the_bar_keeps_its_colours(monkeypatch):
    from handgrad.training.progress import Bar

    below = BytesIO()
    stream = TextIOWrapper(below, encoding="utf-8", newline="\n", write_through=True)
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stdout", Terminal(stream, is_lossy=False))
    assert unescaped_output() is stream
    bar = Bar(1)
    bar.start(0, 0, 10)
    bar.update(0.0, 5, 1.0, None)
    bar.end_epoch({"epoch": 1, "loss": 1.0, "x\x1b]loss": 2.0, "examples_per_second": 10.0})
    bar.close()
    written = below.getvalue()
    assert b"\x1b[38;5;" in written
    assert b"\\x1b]loss 2.0000" in written
    assert b"\\x1b[" not in written
