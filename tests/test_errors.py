"""The text of errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import handgrad as hg
from handgrad.errors import DataError
from handgrad.io.hf.weights import stored

PACKAGE = Path(hg.__file__).parent


@pytest.mark.parametrize("letter", ["x", "ä", "\x1b"])
def test_a_name_of_many_letters_loses_its_middle(letter: str) -> None:
    name = f"begin{letter * 3000}end"
    text = str(DataError(f"f.onnx: nothing reads '{name}'; expected a chain"))
    assert len(text) < 500
    assert text.startswith("f.onnx: nothing reads 'begin")
    assert text.endswith("end'; expected a chain")
    assert "\x1b" not in text


def test_a_text_of_many_words_does_too() -> None:
    text = str(DataError("a b " * 3000 + "; expected less"))
    assert len(text) == 2000
    assert text.endswith("; expected less")


def test_a_usual_text_stays() -> None:
    text = "x" * 400 + " is no path; allowed: " + ", ".join("abcdefgh" * 10)
    assert str(DataError(text)) == text


@pytest.mark.parametrize("name", ["x" * 5000, "x/" * 3000])
def test_names_that_no_system_takes_are_one_sentence(name: str, tmp_path: Path) -> None:
    for read in (hg.load, hg.GPT.from_pretrained, hg.hf.Tokenizer.from_pretrained):
        with pytest.raises(DataError):
            read(name)
    index = {"weight_map": {"a": "x" * 5000}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    with pytest.raises(DataError, match="is missing"):
        stored(tmp_path)


def test_sentences_cut_texts_by_one_helper() -> None:
    """A text is cut by `handgrad.escaping`, which keeps both ends and counts escapes."""
    own = re.compile(r'\[: ?\d+\](!r\}|\}\.\.\.")|\[: ?[4-9]0\]\}')
    found = {
        f"{file.name}: {line.strip()}"
        for room in ("data", "io", "onnx", "lora", "recipes", "training", "inference", "cli")
        for file in (PACKAGE / room).rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if own.search(line)
    }
    assert found == set()
