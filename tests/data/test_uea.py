from __future__ import annotations

import os

import numpy as np
import pytest

from handgrad import data
from handgrad.data.uea import read_ts
from handgrad.errors import DataError

HEADER = """#A set of two channels, by J\u00f6rg
%another comment
@problemName Pets
@timeStamps false
@missing false
@univariate false
@dimensions 2
@equalLength false
@classLabel true cat dog
@data
"""
TRAIN = HEADER + "1,2,3:4,5,6:dog\n\n0.5:-1e-1:cat\n"
TEST = HEADER + "7,8:9,10: cat\n"


def write(folder, train=TRAIN, test=TEST, name="Pets"):
    # An old file's comments are often in Latin-1.
    (folder / f"{name}_TRAIN.ts").write_bytes(train.encode("latin-1"))
    (folder / f"{name}_TEST.ts").write_text(test, encoding="utf-8")


def test_series_lengths_and_classes(tmp_path):
    write(tmp_path)
    pets = data.load("pets", tmp_path)
    assert (pets.name, pets.classes, pets.input_shape) == ("Pets", ("cat", "dog"), (3, 2))
    x, lengths = pets.x_train[:]
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x[0], [[1, 4], [2, 5], [3, 6]])
    np.testing.assert_array_equal(x[1], np.float32([[0.5, -0.1], [0, 0], [0, 0]]))
    np.testing.assert_array_equal(lengths, [3, 1])
    np.testing.assert_array_equal(pets.y_train, [1, 0])
    np.testing.assert_array_equal(pets.x_test[:].x, [[[7, 9], [8, 10]]])


def test_one_channel_and_keys_in_any_case(tmp_path):
    header = "@problemname Pets\n@univariate True\n@CLASSLABEL TRUE 1 -1\n@Data\n"
    write(tmp_path, header + "1,2:1\n", header + "3:-1\n")
    assert data.load("pets", tmp_path).x_train.shape == (1, 2, 1)


def test_one_of_several_sets_in_a_folder(tmp_path):
    folder = tmp_path / "Pets"
    folder.mkdir()
    write(folder)
    assert data.load("mine", folder).name == "Pets"
    write(folder, name="Pets_eq")
    assert data.load("mine", folder).name == "Pets"
    assert data.load("mine", folder / "Pets_eq_TEST.ts").name == "Pets_eq"
    folder.rename(tmp_path / "animals")
    with pytest.raises(DataError, match="holds Pets, Pets_eq; expected one set"):
        data.load("mine", tmp_path / "animals")


def test_vowels_go_by_the_name_of_the_archive(tmp_path, monkeypatch):
    folder = tmp_path / "JapaneseVowels"
    folder.mkdir()
    write(folder, name="JapaneseVowels")
    write(folder, name="JapaneseVowels_eq")
    for root in (tmp_path, folder):
        monkeypatch.setenv("HANDGRAD_DATA", str(root))
        assert data.load("vowels").name == "JapaneseVowels"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1,2,3:", "1,?,3:", r"line 11 has a missing value \(channel 1, step 2\)"),
        (":4,5,6", ":4,5,NaN", r"line 11 has a missing value \(channel 2, step 3\)"),
        (":4,5,6", ":4,five,6", r"line 11 has 'five' \(channel 2, step 2\)"),
        (":4,5,6", ":4,inf,6", r"line 11 has 'inf' \(channel 2, step 2\)"),
        (":4,5,6", ":4,5", "line 11 has 2 values in channel 2; expected 3, as in channel 1"),
        (":4,5,6", "", "line 11 has 1 channels; expected 2"),
        ("0.5:-1e-1:cat", "cat", "line 13 has 0 channels; expected 2"),
        (":dog", ":cow", "line 11 has the class 'cow'; expected cat, dog"),
        (":dog", "", "line 11 has the class '4,5,6'; expected cat, dog"),
        ("@data\n", "", "has no line @data"),
        ("@timeStamps false", "@timeStamps true", "has time stamps; expected series of values"),
        ("@classLabel true cat dog", "@targetLabel true", "has no class labels; expected a line"),
        ("@classLabel true cat dog", "@classLabel false", "has no class labels"),
        (TRAIN[len(HEADER) :], "", "has no series; expected one in each line"),
        ("cat dog\n", "cat dog cow\n", "the classes cat, dog; expected cat, dog, cow"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, old, new, message):
    assert old in TRAIN
    write(tmp_path, TRAIN.replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        data.load("pets", tmp_path)


def test_a_missing_part_is_named(tmp_path):
    write(tmp_path)
    (tmp_path / "Pets_TEST.ts").rename(tmp_path / "Pets.ts")
    with pytest.raises(DataError, match=r"Pets_TEST\.ts is missing; expected a \.ts file"):
        data.load("pets", tmp_path)
    with pytest.raises(DataError, match=r"Pets\.ts is one file of a set; expected a name that"):
        data.load("pets", tmp_path / "Pets.ts")


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n\x00"])
def test_a_file_of_another_kind_is_named(tmp_path, content):
    path = tmp_path / "Pets_TRAIN.ts"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"Pets_TRAIN\.ts has no line @data"):
        read_ts(path)


@pytest.mark.data
def test_the_full_set():
    home = os.environ.get("HANDGRAD_DATA", "")
    if not os.path.isdir(os.path.join(home, "JapaneseVowels")):
        pytest.skip("needs HANDGRAD_DATA with the folder JapaneseVowels")
    vowels = data.load("vowels")
    assert (vowels.x_train.shape, vowels.x_test.shape) == ((270, 26, 12), (370, 29, 12))
    lengths = np.concatenate([vowels.x_train.lengths, vowels.x_test.lengths])
    assert (lengths.min(), lengths.max()) == (7, 29)
    assert set(np.bincount(vowels.y_train)) == {30}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.replace("cat dog", "cat cat"), "has a class label twice"),
        (HEADER.replace("@dimensions 2", "@dimensions ²"), "the dimensions '²'; expected how many"),
        (HEADER.replace("@dimensions 2", "@dimensions " + "9" * 5000), "has the dimensions '99"),
        (HEADER.replace("@data", "@classLabel false\n@data"), "has the line @classLabel twice"),
        (HEADER.replace("@data", "@classLabels\n@data") + "@data\n", "has the line @data twice"),
    ],
)
def test_a_header_that_contradicts_itself(tmp_path, header, message):
    path = tmp_path / "Pets_TRAIN.ts"
    path.write_text(header + "1:2:cat\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_ts(path)


def test_a_line_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr("handgrad.data.uea._LONGEST_SERIES", 1000)
    path = tmp_path / "Pets_TRAIN.ts"
    path.write_text(HEADER + "1," * 10_000)
    with pytest.raises(DataError, match="line 11 has 1,000 characters or more"):
        read_ts(path)


@pytest.mark.parametrize("cell", ["1_0", "１", "0x10", "1 2", "1;2", "1e", "--1", "nan", "1e39"])
def test_what_is_no_number_of_this_form(tmp_path, cell):
    path = tmp_path / "Pets_TRAIN.ts"
    for row in (cell, f"1,{cell}", f"{cell},3"):
        channel = ",".join(["1"] * (row.count(",") + 1))
        path.write_text(f"{HEADER}{channel}:{row}:cat\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"line 11 has .* expected a finite number"):
            read_ts(path)
