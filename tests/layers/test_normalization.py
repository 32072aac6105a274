"""Normalisation layers: BatchNorm's running statistics, which forward changes, and groups."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import BatchNorm, GroupNorm, InstanceNorm, LayerNorm
from tests.tolerances import assert_close


def test_training_moves_the_running_statistics_in_place() -> None:
    norm = BatchNorm(3, momentum=0.25, dtype=np.float64)
    mean_before = norm.running_mean
    x = np.random.default_rng(0).normal(2.0, 3.0, (8, 3, 2))
    norm.forward(x, training=True)
    assert norm.running_mean is mean_before
    assert_close(norm.running_mean, 0.25 * x.mean(axis=(0, 2)), "float64")
    unbiased = x.var(axis=(0, 2), ddof=1)
    assert_close(norm.running_var, 0.75 + 0.25 * unbiased, "float64")


def test_inference_uses_the_running_statistics_and_leaves_them() -> None:
    norm = BatchNorm(3, eps=0.0, dtype=np.float64)
    norm.update_buffers({"running_mean": np.full(3, 2.0), "running_var": np.full(3, 4.0)})
    x = np.random.default_rng(0).standard_normal((8, 3))
    np.testing.assert_array_equal(norm.forward(x)[0], (x - 2) * 0.5)
    np.testing.assert_array_equal(norm.running_mean, np.full(3, 2.0))


def test_groups_of_one_channel_and_of_all() -> None:
    x = np.random.default_rng(1).normal(2.0, 3.0, (3, 4, 5))
    alone = (x - x.mean(axis=2, keepdims=True)) / np.sqrt(x.var(axis=2, keepdims=True) + 1e-5)
    assert_close(InstanceNorm(4, dtype=np.float64).forward(x)[0], alone, "float64")
    whole = LayerNorm(20, dtype=np.float64).forward(x.reshape(3, 20))[0].reshape(x.shape)
    assert_close(GroupNorm(1, 4, dtype=np.float64).forward(x)[0], whole, "float64")


def test_errors_say_what_is_allowed() -> None:
    with pytest.raises(ArgumentError, match="num_groups is 3; allowed: a divisor of 4"):
        GroupNorm(3, 4)
    with pytest.raises(ShapeError, match=r"InstanceNorm: .* \(4, 2\); allowed: \(3, \.\.\.\)"):
        InstanceNorm(3).output_shape((4, 2))
    with pytest.raises(ShapeError, match=r"BatchNorm: .* \(4, 2\); allowed: \(3, \.\.\.\)"):
        BatchNorm(3).output_shape((4, 2))
    with pytest.raises(ShapeError, match=r"LayerNorm: .* \(3, 4\); allowed: \(\.\.\., 3\)"):
        LayerNorm(3).output_shape((3, 4))
