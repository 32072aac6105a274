from __future__ import annotations

import sys

import numpy as np
import pytest

from handgrad import data
from handgrad.errors import ArgumentError, DataError
from tests.data.files import write_image_folder

Image = pytest.importorskip("PIL.Image")


def test_classes_are_folders(tmp_path):
    write_image_folder(tmp_path)
    found = data.load("pets", tmp_path)
    assert found.classes == ("cat", "dog")
    assert (found.x_train.shape, found.x_test.shape) == ((8, 1, 8, 8), (2, 1, 8, 8))
    np.testing.assert_array_equal(np.bincount(found.y_test), [1, 1])
    names = [f"{kind}/{i}.png" for kind in ("cat", "dog") for i in range(5)]
    assert sorted([*found.origins["train"], *found.origins["test"]]) == names
    assert [name[:3] for name in found.origins["test"]] == ["cat", "dog"]


def test_train_and_test_folders(tmp_path):
    write_image_folder(tmp_path / "train")
    write_image_folder(tmp_path / "test")
    found = data.load("pets", tmp_path)
    assert (len(found.x_train), len(found.x_test)) == (10, 10)


def test_one_colour_image_makes_all_of_them_three_channels(tmp_path):
    write_image_folder(tmp_path)
    Image.new("RGB", (8, 8), (255, 0, 0)).save(tmp_path / "dog" / "0.png")
    found = data.load("pets", tmp_path)
    assert found.input_shape == (3, 8, 8)


def test_another_size_is_named(tmp_path):
    write_image_folder(tmp_path)
    Image.new("L", (9, 8)).save(tmp_path / "dog" / "3.png")
    with pytest.raises(DataError, match=r"3\.png is 8 × 9 pixels; expected 8 × 8"):
        data.load("pets", tmp_path)


def test_images_of_any_size_are_made_one(tmp_path):
    write_image_folder(tmp_path)
    tall = np.zeros((30, 10), np.uint8)
    tall[10:20] = 255
    Image.fromarray(tall).save(tmp_path / "dog" / "3.png")
    found = data.load("pets", tmp_path, resize=(4, 4))
    assert found.input_shape == (1, 4, 4)
    every = np.concatenate([found.x_train[:], found.x_test[:]])
    assert sum(bool((x > 0.9).all()) for x in every) == 1


def test_resize_is_for_images(tmp_path):
    with pytest.raises(
        ArgumentError, match=r"resize is \(4, 4\); allowed: with a folder of images"
    ):
        data.load("digits", data_file(tmp_path), resize=(4, 4))


def data_file(folder):
    np.savez(folder / "x.npz", x=np.zeros((4, 2)), y=[0, 1, 0, 1])
    return folder / "x.npz"


def test_a_damaged_image_is_named(tmp_path):
    write_image_folder(tmp_path)
    path = tmp_path / "cat" / "2.png"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DataError, match=r"2\.png cannot be read"):
        data.load("pets", tmp_path)


def test_folders_without_images_are_said_and_one_class_is_none(tmp_path):
    write_image_folder(tmp_path)
    (tmp_path / "bird").mkdir()
    (tmp_path / "bird" / "scan.tif").write_bytes(b"II*")
    (tmp_path / ".hidden").mkdir()
    found = data.load("pets", tmp_path)
    assert found.classes == ("cat", "dog")
    assert found.note == "no images of a known format are in bird, which is no class"
    (tmp_path / "dog").rename(tmp_path / ".dog")
    with pytest.raises(DataError, match="has images of one class, 'cat'; expected a folder of"):
        data.load("pets", tmp_path)


def test_a_class_missing_from_the_test_part_is_named(tmp_path):
    write_image_folder(tmp_path / "train")
    write_image_folder(tmp_path / "test", classes=("cat",))
    with pytest.raises(DataError, match="test has the classes cat; expected cat, dog"):
        data.load("pets", tmp_path)


def test_without_pillow_the_extra_is_named(tmp_path, monkeypatch):
    write_image_folder(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match=r"pip install 'handgrad\[images\]'"):
        data.load("pets", tmp_path)


def test_a_folder_of_no_data_set_is_said_before_its_settings(tmp_path):
    with pytest.raises(DataError, match="holds no data set"):
        data.load("mine", tmp_path, resize=(8, 8))
