from __future__ import annotations

import gzip
import os
import struct

import numpy as np
import pytest

from handgrad import data
from handgrad.errors import DataError
from tests.data.files import TEST, TRAIN, idx_bytes, write_idx_set

IMAGES = "train-images-idx3-ubyte"


@pytest.mark.parametrize("compressed", [False, True])
def test_a_set_as_it_is_or_as_gz(tmp_path, compressed):
    write_idx_set(tmp_path, compressed=compressed)
    mnist = data.load("mnist", tmp_path)
    assert mnist.x_train.shape == (TRAIN, 1, 28, 28)
    assert mnist.x_test.shape == (TEST, 1, 28, 28)
    np.testing.assert_array_equal(mnist.y_train, np.arange(TRAIN) % 10)
    first = np.random.default_rng(0).integers(0, 256, (TRAIN, 28, 28))[0]
    np.testing.assert_array_equal(mnist.x_train.values[0, 0], first)


def test_names_with_a_dot_and_names_of_clothes(tmp_path):
    write_idx_set(tmp_path)
    for path in list(tmp_path.iterdir()):
        path.rename(path.with_name(path.name.replace("-idx", ".idx")))
    assert data.load("fashion-mnist", tmp_path).classes[9] == "Ankle boot"


def test_a_missing_file_is_named(tmp_path):
    write_idx_set(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte is missing; expected"):
        data.load("mnist", tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "starts with the bytes of an empty file; expected 00 00 08 03"),
        (b"\x89PNG\r\n", "starts with the bytes 89 50 4e 47; expected 00 00 08 03"),
        (idx_bytes(np.zeros(5)), "00 00 08 01; expected 00 00 08 03"),
        (b"\x00\x00\x08\x03\x00", "has 5 bytes; expected a header of 16"),
        (idx_bytes(np.zeros((3, 28, 28)))[:-1], r"has 2,367 bytes; expected 2,368.*3 × 28 × 28"),
        (idx_bytes(np.zeros((3, 28, 28))) + b"x", "has 2,369 bytes; expected 2,368"),
        (idx_bytes(np.zeros((3, 28, 28))), "3 examples and 12 labels"),
    ],
)
def test_a_wrong_or_truncated_file_is_named(tmp_path, content, message):
    write_idx_set(tmp_path)
    (tmp_path / IMAGES).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        data.load("mnist", tmp_path)
    assert IMAGES in str(caught.value) or "train part" in str(caught.value)


@pytest.mark.parametrize("damage", [lambda c: c[:-20], lambda c: b"junk" + c, lambda c: c[:30]])
def test_a_damaged_gz_is_named(tmp_path, damage):
    write_idx_set(tmp_path, compressed=True)
    path = tmp_path / f"{IMAGES}.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=rf"{IMAGES}\.gz is not a whole gzip file"):
        data.load("mnist", tmp_path)


def test_a_gz_with_something_else_inside(tmp_path):
    write_idx_set(tmp_path, compressed=True)
    (tmp_path / f"{IMAGES}.gz").write_bytes(gzip.compress(b"hello"))
    with pytest.raises(DataError, match="68 65 6c 6c; expected 00 00 08 03"):
        data.load("mnist", tmp_path)


@pytest.mark.parametrize(
    ("shape", "content", "message"),
    [
        (
            (10, 9000, 9000),
            bytes(10),
            "has .* needs 810 MB of memory; expected at most 150.*unpack",
        ),
        ((10, 28, 28), bytes(10**6), "has 7,857 or more bytes; expected 7,856"),
        ((10, 28, 28), bytes(100), "has 116 bytes; expected 7,856"),
        ((10, 0, 28), b"", "has images of no pixels"),
    ],
)
def test_a_gz_is_unpacked_as_far_as_its_header_says(tmp_path, shape, content, message):
    write_idx_set(tmp_path, compressed=True)
    header = struct.pack(">BBBB3I", 0, 0, 8, 3, *shape)
    (tmp_path / f"{IMAGES}.gz").write_bytes(gzip.compress(header + content))
    with pytest.raises(DataError, match=rf"{IMAGES}\.gz {message}"):
        data.load("mnist", tmp_path)


def test_the_checksum_of_a_gz_is_compared(tmp_path):
    write_idx_set(tmp_path, compressed=True)
    path = tmp_path / f"{IMAGES}.gz"
    content = bytearray(path.read_bytes())
    content[-8] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"is not a whole gzip file \(CRC check failed"):
        data.load("mnist", tmp_path)


@pytest.mark.data
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_the_full_set(name):
    home = os.environ.get("HANDGRAD_DATA", "")
    if not os.path.isdir(os.path.join(home, name)):
        pytest.skip(f"needs HANDGRAD_DATA with the folder {name}")
    full = data.load(name)
    assert (full.x_train.shape, full.x_test.shape) == ((60000, 1, 28, 28), (10000, 1, 28, 28))
    assert set(np.bincount(full.y_train)) == {6000} or name == "mnist"
