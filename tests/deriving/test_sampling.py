"""Images read between their places, against PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.deriving.of_torch import assert_equal_to_torch

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(9)


def places(*shape):
    """Places of which some lie outside of the image."""
    return RNG.uniform(-1.3, 1.3, shape)


@pytest.mark.parametrize(
    ("mode", "padding", "corners"),
    [
        *itertools.product(["bilinear"], ["zeros", "border", "reflection"], [True, False]),
        ("nearest", "zeros", False),
        ("nearest", "reflection", True),
    ],
)
def test_an_image_at_a_grid(mode, padding, corners):
    def sampled(x, grid):
        return F.grid_sample(x, grid, mode, padding, align_corners=corners)

    x, grid = RNG.standard_normal((2, 3, 4, 5)), places(2, 3, 2, 2)
    others = [RNG.standard_normal((1, 2, 6, 4)), places(1, 4, 3, 2)]
    assert_equal_to_torch(sampled, {"x": x, "grid": grid}, others)


def test_a_volume_at_a_grid():
    def sampled(x, grid):
        return F.grid_sample(x, grid, align_corners=False)

    given = {"x": RNG.standard_normal((2, 2, 3, 4, 5)), "grid": places(2, 2, 3, 2, 3)}
    assert_equal_to_torch(sampled, given, list(given.values()))


@pytest.mark.parametrize("corners", [True, False])
def test_a_spatial_transformer(corners):
    def moved(x, theta):
        grid = F.affine_grid(theta, x.shape, align_corners=corners)
        return F.grid_sample(x, grid, align_corners=corners)

    x, theta = RNG.standard_normal((2, 3, 4, 5)), RNG.standard_normal((2, 2, 3)) / 2
    others = [RNG.standard_normal((1, 2, 6, 4)), RNG.standard_normal((1, 2, 3)) / 2]
    assert_equal_to_torch(moved, {"x": x, "theta": theta}, others)
