from __future__ import annotations

import os

import numpy as np
import pytest

from handgrad import data
from handgrad.errors import DataError
from tests.data.files import write_cifar_batches, write_cifar_sheets


def test_binary_batches(tmp_path):
    records = write_cifar_batches(tmp_path)
    cifar = data.load("cifar10", tmp_path)
    assert (cifar.x_train.shape, cifar.x_test.shape) == ((15, 3, 32, 32), (3, 3, 32, 32))
    np.testing.assert_array_equal(cifar.y_train[:3], records[:, 0])
    np.testing.assert_array_equal(cifar.x_train.values[:3].reshape(3, -1), records[:, 1:])


def test_the_folder_the_archive_unpacks_to(tmp_path):
    (tmp_path / "cifar-10-batches-bin").mkdir()
    write_cifar_batches(tmp_path / "cifar-10-batches-bin")
    assert data.load("cifar10", tmp_path).classes[6] == "frog"


def test_png_sheets_have_one_image_in_each_row(tmp_path):
    pytest.importorskip("PIL")
    sheet = write_cifar_sheets(tmp_path)
    cifar = data.load("cifar10", tmp_path)
    assert cifar.x_train.shape == (15, 3, 32, 32)
    # Pixel (row 1, column 2) of image 0, green.
    assert cifar.x_train.values[0, 1, 1, 2] == sheet[0, 34, 1]
    np.testing.assert_array_equal(cifar.y_test, [0, 1, 2])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "data_batch_3.bin is missing"),
        (lambda path: path.write_bytes(b""), "data_batch_3.bin has 0 bytes; expected a multiple"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "9,218 bytes; expected a multiple"),
        (lambda path: path.write_bytes(b"\x0b" * 3073), "has the label 11; expected 0 to 9"),
    ],
)
def test_a_damaged_batch_is_named(tmp_path, damage, message):
    write_cifar_batches(tmp_path)
    damage(tmp_path / "data_batch_3.bin")
    with pytest.raises(DataError, match=message):
        data.load("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("test_batch.png", None, "test_batch.png is missing"),
        ("test_batch.png", b"\x89PNG no more", "test_batch.png is no image of a known format"),
        ("train_lables.json", None, "train_labels.json is missing"),
        ("train_lables.json", b"[1, 2", "is not JSON"),
        ("train_lables.json", b'["cat"]', "not a list of integers"),
        ("train_lables.json", b"[1]", "has 1 labels; expected 15"),
    ],
)
def test_a_damaged_sheet_or_label_file_is_named(tmp_path, file, content, message):
    pytest.importorskip("PIL")
    write_cifar_sheets(tmp_path)
    (tmp_path / file).unlink()
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=message):
        data.load("cifar10", tmp_path)


def test_a_sheet_of_another_width(tmp_path):
    image = pytest.importorskip("PIL.Image")
    write_cifar_sheets(tmp_path)
    image.new("RGB", (1000, 3)).save(tmp_path / "data_batch_1.png")
    with pytest.raises(DataError, match=r"data_batch_1\.png is 1,000 pixels wide; expected 1,024"):
        data.load("cifar10", tmp_path)


@pytest.mark.data
def test_the_full_set():
    home = os.environ.get("HANDGRAD_DATA", "")
    if not os.path.isdir(os.path.join(home, "cifar10")):
        pytest.skip("needs HANDGRAD_DATA with the folder cifar10")
    full = data.load("cifar10")
    assert (full.x_train.shape, full.x_test.shape) == ((50000, 3, 32, 32), (10000, 3, 32, 32))
    assert set(np.bincount(full.y_train)) == {5000}


def test_the_version_for_python_is_refused(tmp_path):
    home = tmp_path / "cifar-10-batches-py"
    home.mkdir()
    for name in ("data_batch_1", "test_batch", "batches.meta"):
        (home / name).write_bytes(b"\x80\x04.")
    with pytest.raises(DataError, match=r"are pickles and could run a program; expected the bin"):
        data.load("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[0, 1, 10]", "has the label 10; expected class indices from 0 to 9"),
        ("[0, -1]", "has the label -1"),
        ("[" + "9" * 5000 + "]", "is not JSON"),
        ("[" * 100_000, "is JSON nested too deep"),
    ],
)
def test_labels_of_sheets_are_looked_at(tmp_path, content, message):
    pytest.importorskip("PIL")
    write_cifar_sheets(tmp_path)
    (tmp_path / "train_lables.json").write_text(content)
    with pytest.raises(DataError, match=message):
        data.load("cifar10", tmp_path)
