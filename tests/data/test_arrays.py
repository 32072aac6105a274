from __future__ import annotations

import gzip

import numpy as np
import pytest

from handgrad import data
from handgrad.errors import DataError

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (20, 6, 6), dtype=np.uint8)
LABELS = np.arange(20) % 4


def test_npz_that_comes_divided(tmp_path):
    path = tmp_path / "set.npz"
    np.savez(path, x_train=IMAGES[:15], y_train=LABELS[:15], x_test=IMAGES[15:], y_test=LABELS[15:])
    found = data.load("mine", path)
    assert (found.x_train.shape, found.x_test.shape) == ((15, 1, 6, 6), (5, 1, 6, 6))
    np.testing.assert_array_equal(found.x_test[:], IMAGES[15:, None] / np.float32(255))
    assert found.classes == ("0", "1", "2", "3")


def test_npz_that_is_divided_here(tmp_path):
    path = tmp_path / "set.npz"
    names = np.array(["north", "east", "south", "west"])
    np.savez(path, x=RNG.normal(size=(20, 3)), y=LABELS, classes=names)
    found = data.load("mine", path, seed=1)
    assert (found.x_train.shape, found.x_test.shape) == ((16, 3), (4, 3))
    assert found.x_train.dtype == np.float32
    assert found.classes == ("north", "east", "south", "west")


def test_npz_with_names_as_labels(tmp_path):
    path = tmp_path / "set.npz"
    np.savez(path, x=IMAGES, y=np.array(["b", "a", "d", "c"])[LABELS])
    assert data.load("mine", path).classes == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": IMAGES}, "has the arrays x; expected x_train"),
        ({"x_train": IMAGES, "y_train": LABELS}, "expected x_train, y_train, x_test and y_test"),
        ({"x": IMAGES, "y": LABELS[:-1]}, "20 examples and 19 labels"),
        ({"x": IMAGES, "y": LABELS * 1.0}, "type float64; expected class indices"),
        ({"x": IMAGES[0, 0], "y": LABELS}, r"x has shape \(6,\)"),
        ({"x": np.array([{}] * 20), "y": LABELS}, "without pickles"),
    ],
)
def test_npz_that_is_no_data_set(tmp_path, arrays, message):
    path = tmp_path / "set.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=message):
        data.load("mine", path)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 truncated"])
def test_npz_that_is_damaged(tmp_path, content):
    path = tmp_path / "set.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"set\.npz cannot be read: .*; expected a whole \.npz"):
        data.load("mine", path)


TABLE = [f"{i},{i / 2},{'ab'[i % 2]}" for i in range(10)]


@pytest.mark.parametrize(
    ("lines", "classes"),
    [
        (TABLE, ("a", "b")),
        (["height,width,kind", *TABLE], ("a", "b")),
        (["label,height,width", *(f"{i % 3},{i},{i}" for i in range(15))], ("0", "1", "2")),
    ],
)
def test_csv_finds_its_labels(tmp_path, lines, classes):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    found = data.load("mine", path)
    assert found.classes == classes
    assert found.input_shape == (2,)
    rows = np.concatenate([found.x_train, found.x_test])
    labels = np.concatenate([found.y_train, found.y_test])
    np.testing.assert_array_equal(rows[:, 0] % len(classes), labels)


def test_maximum_is_what_becomes_1(tmp_path):
    np.savez(tmp_path / "set.npz", x=IMAGES, y=LABELS)
    (tmp_path / "set.csv").write_text("\n".join(f"{i},{i},{i % 2}" for i in range(10)))
    for name, maximum in (("set.npz", 510), ("set.csv", 9)):
        plain = data.load("mine", tmp_path / name)
        scaled = data.load("mine", tmp_path / name, maximum=maximum)
        divisor = maximum / 255 if name == "set.npz" else maximum
        np.testing.assert_allclose(scaled.x_train[:] * divisor, plain.x_train[:], rtol=1e-6)


def test_csv_in_gz(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("\n".join(TABLE).encode()))
    assert len(data.load("mine", path).x_train) == 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no table"),
        (b"1\n2\n", "has no table"),
        (b"a,b,label\n", "has a header and no rows"),
        (b"1,2,a\n1,a\n", "row 2 has 2 columns; expected 3"),
        (b"x,y,label\n1,2,a\n1,oops,b\n", "row 3 has 'oops'; expected a number that float32"),
        (b"\xff\xfe\x00", "byte 0xff in line 1 or later, which is not UTF-8"),
    ],
)
def test_csv_that_is_wrong_names_the_row(tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        data.load("mine", path)
