"""Clipping by global norm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.layers import FlatArrays
from handgrad.optimizers import clip_by_global_norm, clipping_factor, global_norm

GRADIENTS = {"weight": np.array([[3.0, 0.0]], np.float32), "bias": np.array([4.0], np.float32)}


def test_a_long_gradient_is_shortened_in_place() -> None:
    for gradients in (
        FlatArrays.of(GRADIENTS),
        {name: array.copy() for name, array in GRADIENTS.items()},
    ):
        assert clip_by_global_norm(gradients, 1.0) == 5.0
        factor = np.float32(1 / (5 + 1e-6))
        np.testing.assert_array_equal(gradients["weight"], GRADIENTS["weight"] * factor)
        np.testing.assert_array_equal(gradients["bias"], GRADIENTS["bias"] * factor)


def test_a_short_gradient_keeps_its_bits() -> None:
    gradients = FlatArrays.of(GRADIENTS)
    assert clip_by_global_norm(gradients, 6.0) == 5.0
    np.testing.assert_array_equal(gradients["bias"], GRADIENTS["bias"])


def test_the_factor_alone() -> None:
    assert clipping_factor(5.0, 6.0) == 1.0
    assert clipping_factor(5.0, 1.0) == 1 / (5 + 1e-6)
    assert math.isnan(clipping_factor(math.nan, 1.0))


def test_squares_beyond_float32_do_not_overflow() -> None:
    assert global_norm({"weight": np.full(4, 1e30, np.float32)}) == pytest.approx(2e30)


def test_a_nan_is_seen() -> None:
    gradients = {"weight": np.array([1.0, np.nan])}
    assert math.isnan(clip_by_global_norm(gradients, 1.0))
    assert np.isnan(gradients["weight"]).all()


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="max_norm is -1; allowed: 0 or more"):
        clip_by_global_norm({}, -1)
