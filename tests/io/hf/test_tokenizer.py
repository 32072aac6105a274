"""Tokenizers of folders: texts, pairs, padding, what is missing or damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, DataError


def write(folder: Path) -> Path:
    """A tokenizer.json as BERT's, which pads to a fixed length."""
    tokenizers: Any = pytest.importorskip("tokenizers")
    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "cat", "sat", "there"]
    numbers = {word: i for i, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.add_special_tokens(words[:4])
    tokenizer.enable_padding(length=32)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_a_text_to_tokens_and_back(tmp_path: Path) -> None:
    tokenizer = hg.hf.Tokenizer.from_pretrained(write(tmp_path))
    assert tokenizer.size == 8
    tokens = tokenizer.encode("a cat sat")
    assert tokens.tolist() == [1, 4, 5, 6, 2]
    assert tokens.dtype == np.int64
    assert tokenizer.decode(tokens) == "a cat sat"


def test_texts_of_different_lengths(tmp_path: Path) -> None:
    batch = hg.hf.Tokenizer.from_pretrained(write(tmp_path)).batch(["a cat sat there", "dog"])
    assert batch.tokens.tolist() == [[1, 4, 5, 6, 7, 2], [1, 3, 2, 0, 0, 0]]
    assert batch.lengths.tolist() == [6, 3]
    assert not batch.token_types.any()


def test_pairs_of_texts(tmp_path: Path) -> None:
    batch = hg.hf.Tokenizer.from_pretrained(write(tmp_path)).batch([("a cat", "sat"), ("a", "a")])
    assert batch.tokens.tolist() == [[1, 4, 5, 2, 6, 2], [1, 4, 2, 4, 2, 0]]
    assert batch.token_types.tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]


def test_texts_are_cut(tmp_path: Path) -> None:
    tokenizer = hg.hf.Tokenizer.from_pretrained(write(tmp_path), longest=4)
    assert tokenizer.encode("a cat sat there").tolist() == [1, 4, 5, 2]


def test_a_batch_goes_into_a_model(tmp_path: Path) -> None:
    tokenizer = hg.hf.Tokenizer.from_pretrained(write(tmp_path))
    rng = np.random.default_rng(0)
    bert = hg.Bert(8, context=9, width=4, heads=2, blocks=1, rng=rng, pooling="mean")
    batch = tokenizer.batch(["a cat", "a cat sat there"])
    together, _ = bert.forward(batch.tokens, batch.token_types, lengths=batch.lengths)
    alone, _ = bert.forward(tokenizer.encode("a cat")[None])
    np.testing.assert_allclose(together[0], alone[0], rtol=1e-5)


def test_what_is_no_tokenizer(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    with pytest.raises(DataError, match=r"tokenizer.json is missing; expected the tokenizer of a"):
        hg.hf.Tokenizer.from_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match=r"is no tokenizer .*; expected a tokenizer.json"):
        hg.hf.Tokenizer.from_pretrained(tmp_path)


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    folder = write(tmp_path)
    with pytest.raises(ArgumentError, match="texts is a str; allowed: a list of str, or of pairs"):
        hg.hf.Tokenizer.from_pretrained(folder).batch("a cat")
    with pytest.raises(ArgumentError, match="longest is 0; allowed: 1 or more"):
        hg.hf.Tokenizer.from_pretrained(folder, longest=0)
