"""Augmentations move pixels and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.training import Affine, Compose, Flip, Shift

ALL = [
    Shift(2),
    Flip(),
    Affine(rotation=15, scale=0.2, shear=0.1, shift=1.5, elastic=0.8),
    Compose([Flip(0.3), Shift(1)]),
]


def images(count: int = 9, channels: int = 3, height: int = 7, width: int = 10) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.random((count, channels, height, width), dtype=np.float32)
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("augment", ALL)
@pytest.mark.parametrize("count", [0, 1, 9])
def test_shape_type_range_and_repeatability(augment: Compose, count: int) -> None:
    x = images(count)
    y = augment(x, np.random.default_rng(4))
    again = augment(x, np.random.default_rng(4))
    assert y.shape == x.shape
    assert y.dtype == x.dtype
    assert y.flags.c_contiguous
    np.testing.assert_array_equal(y, again)
    if count == 9:
        assert y.min() >= 0
        assert y.max() <= 1 + 1e-6
        assert not np.array_equal(y, augment(x, np.random.default_rng(5)))


def test_nothing_to_do_changes_nothing() -> None:
    x, rng = images(), np.random.default_rng(0)
    for still in (Shift(0), Flip(0), Affine()):
        np.testing.assert_array_equal(still(x, rng), x)


def test_shift_is_padding_and_cropping() -> None:
    x = images()
    y = Shift(2, fill=0.5)(x, np.random.default_rng(1))
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), constant_values=0.5)
    for before, after in zip(padded, y, strict=True):
        crops = [before[:, i : i + 7, j : j + 10] for i in range(5) for j in range(5)]
        assert any(np.array_equal(after, crop) for crop in crops)


def test_flip_mirrors_every_image_it_chooses() -> None:
    x = images()
    np.testing.assert_array_equal(Flip(1)(x, np.random.default_rng(0)), x[..., ::-1])
    y = Flip(0.5)(x, np.random.default_rng(0))
    mirrored = [np.array_equal(a, b[..., ::-1]) for a, b in zip(x, y, strict=True)]
    kept = [np.array_equal(a, b) for a, b in zip(x, y, strict=True)]
    assert np.logical_xor(mirrored, kept).all()
    assert 0 < sum(mirrored) < len(x)


class Fixed(np.random.Generator):
    """A generator whose uniform draws are all at the upper end."""

    def uniform(self, low: float, high: float, size: object) -> np.ndarray:  # type: ignore[override]
        return np.full(size, high)  # type: ignore[call-overload]


def test_a_quarter_turn() -> None:
    square = images(height=8, width=8).astype(np.float64)
    turned = Affine(rotation=90)(square, Fixed(np.random.PCG64(0)))
    np.testing.assert_allclose(turned, np.rot90(square, k=-1, axes=(2, 3)), atol=1e-12)


def test_half_a_pixel_is_the_mean_of_neighbours() -> None:
    x = images().astype(np.float64)
    y = Affine(shift=0.5)(x, Fixed(np.random.PCG64(0)))
    mean = (x[:, :, :-1, :-1] + x[:, :, 1:, :-1] + x[:, :, :-1, 1:] + x[:, :, 1:, 1:]) / 4
    np.testing.assert_allclose(y[:, :, :-1, :-1], mean, atol=1e-12)


def test_what_comes_from_outside_is_fill() -> None:
    x = images()
    y = Affine(shift=100.0, fill=0.25)(x, Fixed(np.random.PCG64(0)))
    np.testing.assert_allclose(y, 0.25, atol=1e-3)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="Shift: pixels is -1"):
        Shift(-1)
    with pytest.raises(ArgumentError, match="probability is 2"):
        Flip(2)
    with pytest.raises(ArgumentError, match="grid is 1"):
        Affine(grid=1)
    with pytest.raises(ShapeError, match=r"\(3, 4\); allowed: \(N, C, H, W\)"):
        Flip()(np.zeros((3, 4)), np.random.default_rng(0))
