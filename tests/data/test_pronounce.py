from __future__ import annotations

import os

import pytest

from handgrad.data import load_pairs
from handgrad.data.pronounce import read_dictionary
from handgrad.errors import DataError

OLD = b""";;; the form of version 0.7b
!EXCLAMATION-POINT  EH2 K S
'TIS  T IH1 Z
A  AH0
A(1)  EY1
D\xc9J\xc0  D EY0
READ  R EH1 D
READ(1)  R IY1 D
"""
NEW = b"""'tis T IH1 Z
a AH0
a(2) EY1
d\xc3\xa9j\xc3\xa0 D EY0 # foreign french
read R EH1 D
read(2) R IY1 D
"""
PACKED = b"""export const dictionary = {
  "'tis": "T IH1 Z",
  "a": "AH0",
  "a(2)": "EY1",
  "d\xc3\xa9j\xc3\xa0": "D EY0",
  "read": "R EH1 D",
  "read(2)": "R IY1 D"
}
"""
ROWS = [
    ("'tis", "T IH1 Z"),
    ("a", "AH0"),
    ("a", "EY1"),
    ("déjà", "D EY0"),
    ("read", "R EH1 D"),
    ("read", "R IY1 D"),
]


@pytest.mark.parametrize(
    ("name", "content"), [("cmudict-0.7b", OLD), ("cmudict.dict", NEW), ("index.js", PACKED)]
)
def test_every_form_of_the_dictionary(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert read_dictionary(tmp_path / name) == ROWS


def test_stress_and_alternates_are_options(tmp_path):
    path = tmp_path / "cmudict.dict"
    path.write_bytes(NEW + b"read(3) R IY2 D\n")
    plain = read_dictionary(path, stress=False)
    assert plain[-2:] == [("read", "R EH D"), ("read", "R IY D")]
    first = read_dictionary(path, alternates=False)
    assert [word for word, _ in first] == ["'tis", "a", "déjà", "read"]


def test_all_ways_to_say_a_word_are_in_one_part(tmp_path):
    path = tmp_path / "cmudict.dict"
    path.write_bytes(NEW)
    data = load_pairs("pronounce", path, validation=0.25, test=0.25)
    parts = [{word for word, _ in part.rows} for part in (data.train, data.validation, data.test)]
    assert sum(len(part) for part in parts) == 4
    assert data.target.words
    assert data.target.decode(data.train.targets[0].x[0]) == data.train.rows[0][1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no words; expected the CMU"),
        (b";;; nothing\n", "has no words"),
        (b"a AH0\nread\n", "line 2 has no phonemes"),
        (b"a AH0\nread reed\n", "line 2 has the phoneme 'reed'; expected one or two capital"),
        (b"\x89PNG\r\n\x1a\n\x00\x01 \x02\n", "line 1 has no phonemes"),
    ],
)
def test_a_file_that_is_no_dictionary(tmp_path, content, message):
    path = tmp_path / "cmudict.dict"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"cmudict\.dict.* {message}"):
        load_pairs("pronounce", path)


def test_without_a_file_the_message_says_what_is_needed(tmp_path, monkeypatch):
    monkeypatch.delenv("HANDGRAD_DATA", raising=False)
    with pytest.raises(DataError, match=r"pronounce: no data given.*the CMU pronouncing"):
        load_pairs("pronounce")
    with pytest.raises(DataError, match="is a folder without pronounce; expected the CMU"):
        load_pairs("pronounce", tmp_path)


@pytest.mark.data
def test_the_full_dictionary():
    home = os.environ.get("HANDGRAD_DATA", "")
    if not os.path.isdir(os.path.join(home, "cmudict")):
        pytest.skip("needs HANDGRAD_DATA with the folder cmudict")
    data = load_pairs("pronounce")
    rows = [*data.train.rows, *data.validation.rows, *data.test.rows]
    assert len(rows) > 130_000
    assert data.target.size == 4 + 69
    plain = load_pairs("pronounce", stress=False)
    assert plain.target.size == 4 + 39


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cmudict.dict", b"(1) AH0\n", "has no words"),
        ("index.js", PACKED[:-3], "index.js ends within its words"),
    ],
)
def test_a_damaged_dictionary(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_dictionary(tmp_path / name)
