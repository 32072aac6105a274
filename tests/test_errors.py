"""The text of errors."""

from __future__ import annotations

import pytest

from handgrad.errors import DataError


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
