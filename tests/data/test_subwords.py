from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from handgrad.data.subwords import Subwords
from handgrad.data.tokenizers import load_tokenizer
from handgrad.errors import ArgumentError, DataError

TEXTS = ["the lower the newer the widest", "the lowest, naïve and wider"] * 5


def test_text_comes_back_and_frequent_words_are_one_token(tmp_path):
    pytest.importorskip("tokenizers")
    subwords = Subwords.learn(TEXTS, 280)
    text = "the widest, 日本  naïve\n"
    tokens = subwords.encode(text)
    assert tokens.dtype == np.int64
    assert subwords.decode(tokens) == text
    assert len(subwords.encode(" the")) == 1
    assert subwords.decode([1, *tokens, 2, 0, 0]) == text
    subwords.save(tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert isinstance(loaded, Subwords)
    assert loaded.size == subwords.size <= 280
    np.testing.assert_array_equal(loaded.encode(text), tokens)


def test_there_is_room_for_every_byte():
    pytest.importorskip("tokenizers")
    with pytest.raises(ArgumentError, match="size is 100; allowed: from 260"):
        Subwords.learn(TEXTS, 100)


def test_a_tokenizer_with_other_marks_is_refused(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, [])).save(str(path))
    with pytest.raises(DataError, match=r"has a, None, None, None as its first tokens; expected"):
        load_tokenizer(path)
    path.write_text(json.dumps({"model": 1}))
    with pytest.raises(DataError, match="is no tokenizer"):
        load_tokenizer(path)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(DataError, match=r"pip install 'handgrad\[subwords\]'"):
        Subwords.learn(TEXTS, 300)
