from __future__ import annotations

import numpy as np
import pytest

from handgrad.data import Dataset, Pixels, stratified_split, with_validation
from handgrad.data.dataset import split_dataset, whole
from handgrad.data.table import load_csv
from handgrad.errors import ArgumentError, DataError


def test_pixels_gives_float32_from_0_to_1_and_leaves_its_values_alone():
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    pixels = Pixels(values, maximum=23)
    assert (pixels.shape, pixels.ndim, len(pixels), pixels.dtype) == ((2, 3, 4), 3, 2, np.float32)
    assert pixels[:].dtype == np.float32
    np.testing.assert_array_equal(pixels[[1]], np.float32(values[[1]]) / np.float32(23))
    np.testing.assert_array_equal(np.asarray(pixels), pixels[:])
    floats = np.ones((2, 3), dtype=np.float32)
    Pixels(floats, 4)[:]
    assert (floats == 1).all()


def test_stratified_split_divides_every_class_in_the_same_proportion():
    labels = np.repeat([0, 1, 2], [50, 30, 2])
    large, small = stratified_split(labels, 0.2, seed=3)
    assert sorted([*large, *small]) == list(range(82))
    np.testing.assert_array_equal(np.bincount(labels[small]), [10, 6, 1])
    assert (np.diff(large) > 0).all()
    assert (np.diff(small) > 0).all()


def test_stratified_split_depends_on_the_seed_alone():
    labels = np.arange(100) % 5
    first, again = stratified_split(labels, 0.2, 0)[1], stratified_split(labels, 0.2, 0)[1]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, stratified_split(labels, 0.2, 1)[1])


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_stratified_split_refuses_an_impossible_fraction(fraction):
    with pytest.raises(ArgumentError, match="allowed: between 0 and 1"):
        stratified_split(np.zeros(4, dtype=np.int64), fraction, 0)


def test_validation_comes_out_of_the_training_part():
    x = np.arange(40, dtype=np.float32)[:, None]
    data = split_dataset("numbers", x, np.arange(40) % 2, ["even", "odd"], seed=0)
    divided = with_validation(data, 0.25, seed=0)
    np.testing.assert_array_equal(divided.x_test, data.x_test)
    both = np.concatenate([divided.x_train, divided.x_validation])
    np.testing.assert_array_equal(np.sort(both, axis=0), data.x_train)
    np.testing.assert_array_equal(divided.x_validation[:, 0] % 2, divided.y_validation)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_train": np.zeros(3, dtype=np.int64)}, "training part|train part has 4 examples and 3"),
        ({"x_test": np.zeros((2, 5))}, r"test examples have shape \(5,\); expected \(2,\)"),
        ({"y_test": np.array([0, 2])}, "label 2; expected 0 to 1"),
        ({"y_test": np.array([-1, 0])}, "label -1; expected 0 to 1"),
        ({"x_test": np.zeros((0, 2)), "y_test": np.zeros(0, dtype=int)}, "test part is empty"),
    ],
)
def test_a_dataset_that_does_not_fit_together_is_refused(change, message):
    parts = {
        "x_train": np.zeros((4, 2)),
        "y_train": np.array([0, 1, 0, 1]),
        "x_test": np.zeros((2, 2)),
        "y_test": np.array([0, 1]),
    }
    with pytest.raises(DataError, match=message):
        Dataset("toy", classes=("a", "b"), **{**parts, **change})


def test_nothing_is_set_aside_of_too_few():
    x, y = np.zeros((2, 1)), np.array([0, 1])
    few = Dataset("few", x, y, x, y, ("a", "b"))
    assert with_validation(few, 0.1, 0).x_validation is None


def test_examples_know_the_rows_and_the_files_that_they_are_from(tmp_path):
    lines = ["# made by hand", "", "size,kind"]
    for i in range(40):
        lines += [f"{i}.5,{'ab'[i % 2]}", *([""] if i == 10 else [])]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", "utf-8")
    data = with_validation(load_csv("t", tmp_path / "t.csv"), 0.2, 0)
    assert set(data.origins) == {"train", "validation", "test"}
    for part, rows in data.origins.items():
        x = getattr(data, f"x_{part}")
        assert len(rows) == len(x)
        for row, (size,) in zip(rows.tolist(), x.tolist(), strict=True):
            assert lines[row - 1].startswith(f"{size:g},")
    everything = whole(data)
    assert everything.origins["test"].tolist() == [
        row for part in ("train", "test", "validation") for row in data.origins[part].tolist()
    ]
