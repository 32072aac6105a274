from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from handgrad import data
from handgrad.errors import ArgumentError, DataError

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


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "bool"])
def test_npz_of_narrow_numbers_stays_narrow(tmp_path, dtype):
    path = tmp_path / "set.npz"
    x = RNG.integers(0, 100, (20, 3)).astype(dtype)
    np.savez(path, x_train=x[:15], y_train=LABELS[:15], x_test=x[15:], y_test=LABELS[15:])
    found = data.load("mine", path)
    assert found.x_train.values.dtype == dtype
    assert found.x_train.dtype == np.float32
    np.testing.assert_array_equal(found.x_train[:], x[:15].astype(np.float32))


def test_npz_of_narrow_numbers_takes_little_memory(tmp_path):
    path = tmp_path / "set.npz"
    np.savez(path, x=np.ones((20, 1_000_000), np.int8), y=LABELS)
    tracemalloc.start()
    try:
        data.load("mine", path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * path.stat().st_size


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


def test_maximum_is_what_becomes_1(tmp_path):
    np.savez(tmp_path / "set.npz", x=IMAGES, y=LABELS)
    (tmp_path / "set.csv").write_text("\n".join(f"{i},{i},{i % 2}" for i in range(10)))
    for name, maximum in (("set.npz", 510), ("set.csv", 9)):
        plain = data.load("mine", tmp_path / name)
        scaled = data.load("mine", tmp_path / name, maximum=maximum)
        divisor = maximum / 255 if name == "set.npz" else maximum
        np.testing.assert_allclose(scaled.x_train[:] * divisor, plain.x_train[:], rtol=1e-6)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": IMAGES, "y": LABELS, "classes": np.array("a")}, r"classes have shape \(\)"),
        ({"x": IMAGES, "y": LABELS, "classes": np.ones((4, 2))}, r"classes have shape \(4, 2\)"),
        ({"x": IMAGES, "y": LABELS.astype("u8") + 2**63}, "a label is .*; expected class indices"),
        ({"x": np.zeros((20, 0)), "y": LABELS}, r"x has shape \(20, 0\)"),
        ({"x": np.full((20, 2), np.nan), "y": LABELS}, "x has a number in example 0 that is not"),
        ({"x": np.full((20, 2), 1e300), "y": LABELS}, "example 0 that is not finite in float32"),
        (
            {"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES / 255, "y_test": LABELS},
            "expected the same type in both",
        ),
        (
            {"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES, "y_test": LABELS.astype("U")},
            "in both parts the same",
        ),
    ],
)
def test_npz_that_would_be_read_as_something_else(tmp_path, arrays, message):
    path = tmp_path / "set.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=message):
        data.load("mine", path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"maximum": 0}, "maximum is 0; allowed: a number above 0"),
        ({"maximum": float("nan")}, "maximum is nan"),
        ({"maximum": "255"}, "maximum is '255'"),
        ({"seed": -1}, "seed is -1; allowed: an integer from 0"),
        ({"seed": 0.5}, "seed is 0.5"),
    ],
)
def test_settings_are_looked_at_before_the_file(settings, message):
    with pytest.raises(ArgumentError, match=message):
        data.load("mine", "nowhere", **settings)
