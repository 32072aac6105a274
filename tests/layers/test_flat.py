"""One buffer and its named views."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import FlatArrays

SHAPES = {"0.weight": (3, 2), "0.bias": (3,), "10.weight": (2, 5), "10.scale": ()}


def test_views_cover_the_buffer_in_order() -> None:
    flat = FlatArrays.zeros(SHAPES)
    flat.buffer[...] = np.arange(20)
    assert {name: array.shape for name, array in flat.items()} == SHAPES
    np.testing.assert_array_equal(flat["0.bias"], [6, 7, 8])
    np.testing.assert_array_equal(flat["10.scale"], 19)
    assert flat.buffer.flags.c_contiguous
    assert flat.buffer.ctypes.data % 64 == 0


def test_child_is_a_part_of_the_same_buffer_made_once() -> None:
    flat = FlatArrays.zeros(SHAPES)
    child = flat.child("10")
    assert child is flat.child("10")
    assert list(child) == ["weight", "scale"]
    child.buffer[...] = 1
    assert float(flat.buffer.sum()) == 11
    assert list(flat.child("1")) == []
    assert flat.child("1").buffer.size == 0


def test_child_of_scattered_arrays_is_refused() -> None:
    flat = FlatArrays.zeros({"a.x": (1,), "b.x": (1,), "a.y": (1,)})
    with pytest.raises(ArgumentError, match="'a' are apart"):
        flat.child("a")


def test_of_copies_and_keeps_the_dtype() -> None:
    weight = np.arange(6.0).reshape(2, 3)
    flat = FlatArrays.of({"weight": weight.T})
    np.testing.assert_array_equal(flat["weight"], weight.T)
    assert flat.buffer.dtype == np.float64
    weight[...] = 0
    assert flat.buffer.any()


def test_copy_from_names_what_does_not_fit() -> None:
    flat = FlatArrays.zeros({"weight": (2,)})
    with pytest.raises(ShapeError, match=r"'weight' has shape \(1,\); allowed: \(2,\)"):
        flat.copy_from({"weight": np.ones(1)})
