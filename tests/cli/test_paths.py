"""Paths that are none, on every line that takes one."""

from __future__ import annotations

import pytest

LINES = [
    ("evaluate", "PATH"),
    ("evaluate", "none", "--data", "PATH"),
    ("train", "digits", "--data", "PATH"),
    ("train", "digits", "--epochs", "1", "--out", "PATH"),
    ("train", "--resume", "PATH"),
    ("zoo", "--out", "PATH", "digits"),
    ("train", "PATH"),
    ("train", "PATH.csv"),
    ("predict", "PATH", "x.npy"),
    ("predict", "none", "PATH"),
    ("export", "PATH", "x.onnx"),
    ("export", "none", "PATH"),
    ("check", "PATH"),
    ("check", "PATH.py:f"),
    ("derive", "softmax", "--out", "PATH.py"),
    ("notes", "relu", "--out", "PATH.md"),
    ("notes", "PATH/run"),
    ("generate", "PATH"),
    ("translate", "PATH", "x"),
    ("recipes", "copy", "digits", "PATH.toml"),
    ("exercise", "1", "PATH.py"),
    ("exercise", "1", "--start", "PATH.py"),
    ("lr", "PATH"),
    ("lr", "digits", "--data", "PATH"),
    ("limit", "PATH.toml"),
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_what_is_no_path_is_one_sentence(refused, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    for path in (
        "",
        "~nobody-of-this-name/x",
        "x" * 300,
        "x" * 5000,
        "none/" * 1000,
        "/dev/null/x",
    ):
        if path or not any(part.startswith("PATH.") for part in line):
            refused(*(part.replace("PATH", path) for part in line))
    assert not list(tmp_path.iterdir())
