"""Convolutions: sizes, FLOPs and errors."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d


def test_sizes_are_pytorch_s() -> None:
    rng = np.random.default_rng(0)
    conv = Conv2d(4, 6, (3, 5), rng=rng, groups=2)
    assert conv.weight.shape == (6, 2, 3, 5)
    assert Conv1d(4, 6, 3, rng=rng).weight.shape == (6, 4, 3)
    assert ConvTranspose1d(4, 6, 3, rng=rng, groups=2).weight.shape == (4, 3, 3)
    assert ConvTranspose2d(4, 6, (3, 5), rng=rng, groups=2).weight.shape == (4, 3, 3, 5)


def test_flops_count_a_multiply_add_as_two() -> None:
    rng = np.random.default_rng(0)
    assert Conv2d(1, 32, 3, rng=rng).flops((1, 28, 28)) == 26 * 26 * 32 * (2 * 9 + 1)
    transposed = ConvTranspose2d(2, 3, 2, stride=2, rng=rng, bias=False)
    assert transposed.flops((2, 5, 5)) == 2 * (2 * 5 * 5) * (3 * 2 * 2)


def test_errors_say_what_is_allowed() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match=r"Conv2d: groups is 3; allowed: .* 4 in_channels"):
        Conv2d(4, 6, 3, rng=rng, groups=3)
    with pytest.raises(ArgumentError, match=r"Conv2d: stride is \(1, 2, 3\)"):
        Conv2d(4, 6, 3, rng=rng, stride=(1, 2, 3))
    with pytest.raises(ArgumentError, match="Conv1d: activation is 'softmax'"):
        Conv1d(4, 6, 3, rng=rng, activation="softmax")
    with pytest.raises(ShapeError, match=r"Conv2d: .* \(3, 8, 8\); allowed: \(4, H, W\)"):
        Conv2d(4, 6, 3, rng=rng).output_shape((3, 8, 8))
    with pytest.raises(ShapeError, match=r"Conv2d: .* \(4, 2, 8\); .* the kernel \(3, 3\)"):
        Conv2d(4, 6, 3, rng=rng).output_shape((4, 2, 8))
    with pytest.raises(ShapeError, match=r"ConvTranspose2d: .* allowed: at least 1"):
        ConvTranspose2d(4, 6, 3, rng=rng, padding=2).output_shape((4, 2, 2))
    with pytest.raises(ShapeError, match=r"ConvTranspose1d: .* \(4, 2, 2\); allowed: \(4, T\)"):
        ConvTranspose1d(4, 6, 3, rng=rng).output_shape((4, 2, 2))
    with pytest.raises(
        ArgumentError, match=r"ConvTranspose1d: stride is \(1, 2\); allowed: an int,"
    ):
        ConvTranspose1d(4, 6, 3, rng=rng, stride=(1, 2))
