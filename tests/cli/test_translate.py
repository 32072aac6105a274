from __future__ import annotations

import sys
from io import BytesIO, TextIOWrapper

import pytest

from handgrad.cli.translate import _read_stdin
from handgrad.errors import DataError

PAIRS = "\n".join(f"{a}{b}\t{b}{a}" for a in "abcdefgh" for b in "ijklmnop")


@pytest.fixture(scope="module")
def pairs_run(handgrad, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "swap.tsv").write_text(PAIRS)
    (folder / "swap.toml").write_text(RECIPE)
    out = folder / "run"
    result = handgrad("train", folder / "swap.toml", "--data", folder / "swap.tsv", "--out", out)
    assert result.exit_code == 0, result.output
    return out


RECIPE = """
[data]
name = "swap"

[model]
type = "seq2seq"
embedding = 6
hidden = 8
cell = "sigmoid"
encoder = "rnn"

[optimizer]
type = "adam"

[training]
epochs = 1
batch_size = 16
"""


def test_texts_a_file_and_stdin_give_the_same(handgrad, pairs_run, tmp_path):
    given = handgrad("translate", pairs_run, "ai", "bk", "--longest", 4)
    assert given.exit_code == 0, given.output
    assert len(given.stdout.splitlines()) == 2
    (tmp_path / "two.txt").write_text("ai\nbk\n")
    read = handgrad("translate", pairs_run, "--file", tmp_path / "two.txt", "--longest", 4)
    assert read.stdout == given.stdout
    searched = handgrad("translate", pairs_run, "ai", "bk", "--longest", 4, "--beam", 3)
    assert searched.exit_code == 0, searched.output
    assert len(searched.stdout.splitlines()) == 2


def test_stdin_is_utf8_in_every_locale(monkeypatch):
    given = TextIOWrapper(BytesIO("ναι\n".encode()), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", given)
    assert _read_stdin() == "ναι\n"
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"ab\xff"), encoding="utf-8"))
    with pytest.raises(DataError, match="standard input has the byte 0xff at position 2"):
        _read_stdin()


def test_unknown_letters_are_read_as_unknown(handgrad, pairs_run):
    assert handgrad("translate", pairs_run, "€€", "--longest", 3).exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["ai", "--beam", "0"], "width is 0"),
        (["ai", "--longest", "0"], "longest is 0"),
        (["ai", "--beam", "2", "--length-penalty=-1"], "length_penalty is -1.0"),
        (["--file", "/nowhere"], "/nowhere"),
        (["ai", "--file", "x"], "texts and --file are given; allowed: one of them"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(refused, pairs_run, options, message):
    assert message in refused("translate", pairs_run, *options)


def test_other_runs_are_named(refused, digits_run, pairs_run):
    assert "expected one on pairs of texts" in refused("translate", digits_run, "x")
    assert "expected one on classes" in refused("predict", pairs_run, "x.npy")
