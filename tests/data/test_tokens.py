from __future__ import annotations

import json

import numpy as np
import pytest

from handgrad.data import Bytes, Symbols, load_tokenizer
from handgrad.errors import DataError


@pytest.mark.parametrize(
    "tokenizer",
    [
        Symbols.learn(["naïve 日本\n", "tab\t"]),
        Symbols.learn(["naïve 日本\n", "tab\t"], marked=True),
        Bytes(),
    ],
)
def test_decoding_gives_the_text_back_after_saving_too(tokenizer, tmp_path):
    text = "tab\tnaïve\n日本"
    tokens = tokenizer.encode(text)
    assert tokens.dtype == np.int64
    assert tokens.min() >= 0
    assert tokens.max() < tokenizer.size
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert (type(loaded), loaded.size) == (type(tokenizer), tokenizer.size)
    np.testing.assert_array_equal(loaded.encode(text), tokens)
    assert loaded.decode(tokens) == tokenizer.decode(tokens.tolist()) == text
    assert len(tokenizer.encode("")) == 0


def test_symbols_are_sorted_and_come_after_the_marks():
    assert Symbols.learn(["cab"]).symbols == ("a", "b", "c")
    marked = Symbols.learn(["cab"], marked=True)
    assert marked.symbols == ("<pad>", "<s>", "</s>", "<unk>", "a", "b", "c")
    np.testing.assert_array_equal(marked.encode("xa"), [3, 4])
    assert marked.decode([1, 4, 3, 5, 2, 0, 0]) == "a<unk>b"


def test_words_stand_between_spaces(tmp_path):
    words = Symbols.learn(["AH0 K", "K AE1"], words=True, marked=True)
    assert words.symbols[4:] == ("AE1", "AH0", "K")
    assert words.decode([1, 5, 6, 2]) == "AH0 K"
    words.save(tmp_path / "words.json")
    assert load_tokenizer(tmp_path / "words.json").decode(words.encode(" K  AE1 ")) == "K AE1"


def test_without_marks_the_unknown_is_named():
    with pytest.raises(DataError, match=r"'é' at position 1 is not in the vocabulary.*its 2 char"):
        Symbols.learn(["ab"]).encode("bé")
    with pytest.raises(DataError, match=r"'d' at position 2 is not in the vocabulary.*its 3 words"):
        Symbols.learn(["a b c"], words=True).encode("a b d")


def test_nothing_to_learn_from():
    with pytest.raises(DataError, match="the texts are empty"):
        Symbols.learn(["", ""])


def test_half_a_character_is_a_replacement():
    assert Bytes().decode(Bytes().encode("aé")[:-1]) == "a\ufffd"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "JSON of another kind"),
        (json.dumps({"tokens": "syllables", "symbols": []}), "JSON of another kind"),
        (json.dumps({"tokens": "characters", "symbols": ["a", "b", "a"]}), "has a symbol twice"),
        (json.dumps({"tokens": "characters", "symbols": []}), "or none"),
        (json.dumps({"tokens": "characters", "symbols": ["a", "bc"]}), "the symbol 'bc'"),
        (json.dumps({"tokens": "words", "symbols": ["a", 5]}), "the symbol '5'; expected words"),
        (json.dumps({"tokens": "words", "symbols": ["a", ""]}), "the symbol ''; expected words"),
        (json.dumps({"tokens": "words", "symbols": ["\ud800"]}), "expected Unicode characters"),
        ("[" * 100_000, "is JSON nested too deep"),
    ],
)
def test_a_file_that_is_no_tokenizer(tmp_path, content, message):
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        load_tokenizer(path)
