from __future__ import annotations

import numpy as np
import pytest

from handgrad.data.examples import read_examples
from handgrad.errors import DataError

SHAPE = (1, 8, 8)
IMAGE = np.arange(64, dtype=np.uint8).reshape(8, 8) % 17


@pytest.mark.parametrize("array", [IMAGE, IMAGE[None], IMAGE[None, None], IMAGE / np.float32(16)])
def test_one_example_in_every_form(tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", x=array, y=0)
    for name in ("x.npy", "x.npz"):
        found = read_examples(tmp_path / name, SHAPE, maximum=16)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found[0, 0], IMAGE / np.float32(16))


def test_many_examples_and_a_table(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((5, 3)) * 7)
    np.testing.assert_array_equal(read_examples(tmp_path / "x.npy", (3,)), np.full((5, 3), 7))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("x.npy", np.zeros((3, 8, 9)), r"has shape \(3, 8, 9\)"),
        ("x.npy", np.array(["a"]), "expected numbers"),
        ("x.npy", np.array(3.0), r"has shape \(\)"),
        ("x.npy", np.full((8, 8), 16.0), "values from 16 to 16; expected 0 to 1, or integers"),
        ("x.npy", np.full((8, 8), np.nan), "not finite in float32"),
        ("x.npy", np.array([None]), "without pickles"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, name, array, message):
    np.save(tmp_path / name, array)
    with pytest.raises(DataError, match=message):
        read_examples(tmp_path / name, SHAPE, maximum=16)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npy", None, "x.npy is missing"),
        ("x.npz", None, "x.npz is missing"),
        ("x.npy", b"\x93NUMPY", "x.npy cannot be read"),
        ("x.txt", b"hello", "of no known kind; expected an image"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_examples(tmp_path / name, SHAPE)


def test_a_npz_with_several_arrays_needs_x(tmp_path):
    np.savez(tmp_path / "x.npz", a=IMAGE, b=IMAGE)
    with pytest.raises(DataError, match="has the arrays a, b; expected x, or only one"):
        read_examples(tmp_path / "x.npz", SHAPE)


def test_sequences_of_any_length(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((7, 3)))
    assert read_examples(path, (29, 3), any_length=True).shape == (1, 7, 3)
    np.save(path, np.ones((4, 7, 3)))
    assert read_examples(path, (29, 3), any_length=True).shape == (4, 7, 3)
    with pytest.raises(DataError, match=r"expected numbers of shape \(7, 5\)"):
        read_examples(path, (29, 5), any_length=True)
    with pytest.raises(DataError, match=r"expected numbers of shape \(29, 3\)"):
        read_examples(path, (29, 3))
