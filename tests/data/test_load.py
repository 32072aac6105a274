from __future__ import annotations

import pytest

from handgrad import data
from handgrad.errors import DataError
from tests.data.files import write_cifar_batches, write_idx_set


def test_handgrad_data_is_the_set_or_the_folder_above(tmp_path, monkeypatch):
    (tmp_path / "mnist").mkdir()
    write_idx_set(tmp_path / "mnist")
    for path in (tmp_path, tmp_path / "mnist"):
        monkeypatch.setenv("HANDGRAD_DATA", str(path))
        assert data.load("mnist").input_shape == (1, 28, 28)


def test_without_any_folder_the_message_says_how_to_give_one(monkeypatch):
    monkeypatch.delenv("HANDGRAD_DATA", raising=False)
    with pytest.raises(DataError, match=r"--data PATH or HANDGRAD_DATA=PATH.*train-images-idx3"):
        data.load("mnist")


def test_another_set_in_handgrad_data_is_refused(tmp_path, monkeypatch):
    write_cifar_batches(tmp_path)
    monkeypatch.setenv("HANDGRAD_DATA", str(tmp_path))
    with pytest.raises(DataError, match="holds no mnist; expected a folder with train-images"):
        data.load("mnist")


def test_the_users_own_data_goes_by_its_own_name(tmp_path):
    path = tmp_path / "photographs"
    path.mkdir()
    write_cifar_batches(path)
    assert data.load("mnist", path).name == "photographs"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not exist; expected"),
        (lambda path: path.mkdir(), "holds no data set; expected a folder of IDX files"),
        (lambda path: path.write_text("hello"), "holds no data set; expected"),
    ],
)
def test_a_path_without_data_is_named(tmp_path, make, message):
    path = tmp_path / "nothing"
    make(path)
    with pytest.raises(DataError, match=f"nothing {message}"):
        data.load("mnist", path)
