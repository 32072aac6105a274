from __future__ import annotations

import sys

import numpy as np
import pytest

from handgrad.data import Blocks, load_text
from handgrad.errors import ArgumentError, DataError

TEXT = "The quick brown fox — naïve.\n" * 20


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "story.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_the_end_of_the_text_is_for_validation(path):
    text = load_text(path, validation=0.25)
    decode = text.tokenizer.decode
    assert text.name == "story"
    assert decode(text.train) + decode(text.validation) == TEXT
    assert len(text.validation) == text.characters == len(TEXT) // 4
    assert text.tokens_per_character == 1
    assert text.tokenizer.size == len(set(TEXT))


def test_bytes_are_more_than_characters(path):
    text = load_text(path, unit="bytes")
    assert text.tokenizer.size == 256
    assert len(text.train) + len(text.validation) == len(TEXT.encode())
    assert text.tokens_per_character > 1


@pytest.mark.parametrize(("unit", "dtype"), [("characters", np.uint8), ("bytes", np.uint8)])
def test_tokens_take_as_few_bytes_as_the_vocabulary_needs(tmp_path, unit, dtype):
    path = tmp_path / "t.txt"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode("utf-8-sig"))
    text = load_text(path, unit=unit)
    assert text.train.dtype == text.validation.dtype == dtype
    tokens = np.concatenate([text.train, text.validation])
    assert text.tokenizer.decode(tokens) == TEXT
    (x,), y = Blocks(text.train, 8).gather(np.array([0, 3]))
    assert x.dtype == y.dtype == np.int64
    path.write_text("".join(map(chr, range(0x4E00, 0x4E00 + 300))), encoding="utf-8")
    assert load_text(path).train.dtype == np.uint16


def test_blocks_and_what_follows_each_token():
    blocks = Blocks(np.arange(50), 8, count=1000)
    order = blocks.order(16, np.random.default_rng(0))
    assert len(blocks) == len(order) == 1000
    assert (order.min(), order.max()) == (0, 41)
    (x,), y = blocks.gather(order[:16])
    assert x.shape == y.shape == (16, 8)
    np.testing.assert_array_equal(x[:, 0], order[:16])
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(order, blocks.order(16, np.random.default_rng(0)))


@pytest.mark.parametrize(("length", "count"), [(9, 1), (16, 1), (17, 2), (50, 6)])
def test_judging_goes_through_the_text_once(length, count):
    blocks = Blocks(np.arange(length), 8)
    assert len(blocks) == len(blocks.every()) == count
    (x,), y = blocks.gather(blocks.every())
    np.testing.assert_array_equal(x.reshape(-1), np.arange(8 * count))
    assert y[-1, -1] == 8 * count


def test_python_carries_a_text():
    topics = pytest.importorskip("pydoc_data.topics")
    text = load_text()
    assert text.name == "pydoc_data.topics"
    assert text.tokenizer.decode(text.train).startswith(topics.topics[min(topics.topics)])


def test_a_python_without_it_is_told_what_to_give(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(DataError, match="expected --data FILE"):
        load_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 characters; expected a text"),
        (b"a", "has 1 characters; expected a text"),
        (b"abc\n\xe9t\xe9", r"byte 0xe9 at position 4 \(line 2\)"),
    ],
)
def test_a_file_without_text_is_named(path, content, message):
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"story\.txt .*{message}"):
        load_text(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.txt is missing; expected text in UTF-8"):
        load_text(tmp_path / "nothing.txt")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unit": "syllables"}, "unit is 'syllables'; allowed: characters or bytes"),
        ({"validation": 0.0}, "validation is 0.0; allowed: between 0 and 1"),
        ({"validation": 1.0}, "validation is 1.0"),
    ],
)
def test_settings_that_are_not_allowed(path, settings, message):
    with pytest.raises(ArgumentError, match=message):
        load_text(path, **settings)


def test_a_text_shorter_than_a_block():
    with pytest.raises(DataError, match="8 tokens is too short; expected at least 9"):
        Blocks(np.arange(8), 8)
    with pytest.raises(ArgumentError, match="count is 0"):
        Blocks(np.arange(20), 8, count=0)
