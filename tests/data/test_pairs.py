from __future__ import annotations

import numpy as np
import pytest

from handgrad.data import Symbols, load_pairs
from handgrad.data.pairs import Pairs, divide, read_pairs
from handgrad.errors import ArgumentError, DataError

ROWS = [(f"{n:b}", f"{n}") for n in range(100)]


def write(path, rows=ROWS):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    return path


def test_comments_and_blank_lines_are_passed_over(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("# comment\n\none \t uno\n   \nseñor\tsir\r\n", encoding="utf-8")
    assert read_pairs(path) == [("one", "uno"), ("señor", "sir")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\n\nonly one\n", "line 3 has 1 columns; expected 2"),
        ("# c\na\tb\tc\n", "line 2 has 3 columns; expected 2"),
        ("a\tb\n\tb\n", "line 2 has an empty source"),
        ("a\t \n", "line 1 has an empty target"),
        ("# nothing\n", "has no pairs; expected a file with"),
        ("", "has no pairs"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, content, message):
    path = tmp_path / "pairs.tsv"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_pairs(path)


def test_a_batch_has_marks_and_lengths():
    letters = Symbols.learn(["abc"], marked=True)
    pairs = Pairs.of([("ab", "c"), ("x", "abc")], letters, letters)
    (sources, source_lengths, inputs, target_lengths), targets = pairs.gather(np.array([0, 1]))
    np.testing.assert_array_equal(sources, [[4, 5, 2], [3, 2, 0]])
    np.testing.assert_array_equal(source_lengths, [3, 2])
    np.testing.assert_array_equal(inputs, [[1, 6, 0, 0], [1, 4, 5, 6]])
    np.testing.assert_array_equal(target_lengths, [2, 4])
    np.testing.assert_array_equal(targets, [[6, 2, 0, 0], [4, 5, 6, 2]])


def test_parts_have_no_source_in_common_and_depend_on_the_seed_alone():
    rows = [(f"{n // 2}", f"{n}") for n in range(200)]
    parts = divide(rows, 0.1, 0.2, seed=1)
    assert [len(part) for part in parts] == [140, 20, 40]
    sources = [{source for source, _ in part} for part in parts]
    assert not sources[0] & sources[1]
    assert not sources[0] & sources[2]
    assert not sources[1] & sources[2]
    assert sorted(row for part in parts for row in part) == sorted(rows)
    assert parts == divide(rows, 0.1, 0.2, seed=1)
    assert parts != divide(rows, 0.1, 0.2, seed=2)


def test_too_few_pairs_to_divide():
    with pytest.raises(DataError, match="2 different sources cannot be divided"):
        divide([("a", "1"), ("b", "2")], 0.1, 0.1, seed=0)
    with pytest.raises(ArgumentError, match=r"validation is 0; allowed: between 0 and 1"):
        divide(ROWS, 0, 0.1, seed=0)


def test_a_file_by_characters(tmp_path):
    data = load_pairs("translate", write(tmp_path / "binary.tsv"), validation=0.1, test=0.1)
    assert data.name == "binary"
    assert (len(data.train), len(data.validation), len(data.test)) == (80, 10, 10)
    assert data.source.size == 4 + 2
    source, target = data.train.rows[7]
    (sources, *_), targets = data.train.gather(np.array([7]))
    assert data.source.decode(sources[0]) == source
    assert data.target.decode(targets[0]) == target


def test_words_and_subwords(tmp_path):
    path = write(tmp_path / "words.tsv", [(f"{a} and {b}", b) for a, b in ROWS])
    words = load_pairs("translate", path, unit="words")
    assert "and" in words.source.symbols
    pytest.importorskip("tokenizers")
    subwords = load_pairs("translate", path, unit="subwords", size=300)
    assert subwords.source is subwords.target
    assert subwords.source.size <= 300


def test_an_epoch_visits_every_pair(tmp_path):
    train = load_pairs("translate", write(tmp_path / "binary.tsv")).train
    order = train.order(8, np.random.default_rng(0))
    assert sorted(order) == list(train.every()) == list(range(len(train)))


def test_long_pairs_are_left_out_and_counted(tmp_path):
    path = write(tmp_path / "binary.tsv")
    data = load_pairs("translate", path, longest=6)
    kept = [*data.train.rows, *data.validation.rows, *data.test.rows]
    assert data.left_out == 100 - len(kept) > 0
    assert max(len(source) for source, _ in kept) == 5
    assert data.train.sources.lengths.max() == 6
    with pytest.raises(DataError, match="every pair of the training part has more than 1 tokens"):
        load_pairs("translate", path, longest=1)


def test_every_target_of_a_source_is_a_reference():
    letters = Symbols.learn(["ab"], marked=True)
    pairs = Pairs.of([("a", "b"), ("b", "a"), ("a", "a")], letters, letters)
    assert pairs.references() == {"a": ("b", "a"), "b": ("a",)}


def test_the_file_is_found_where_handgrad_data_points(tmp_path, monkeypatch):
    (tmp_path / "translate").mkdir()
    write(tmp_path / "translate" / "verses.tsv")
    monkeypatch.setenv("HANDGRAD_DATA", str(tmp_path))
    assert load_pairs("translate").name == "translate"


def test_settings_that_are_not_allowed(tmp_path):
    with pytest.raises(ArgumentError, match="unit is 'bytes'; allowed: characters, words, subw"):
        load_pairs("translate", write(tmp_path / "binary.tsv"), unit="bytes")


def test_rows_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDGRAD_DATA_MB", "1")
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\n" * 10_000)
    with pytest.raises(DataError, match=r"pairs\.tsv has 40,000 bytes and needs 1 MB of memory"):
        read_pairs(path)
    path.write_text("a" * 5_000_000)
    with pytest.raises(DataError, match="line 1 has 4,194,304 characters or more"):
        read_pairs(path)
