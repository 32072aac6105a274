"""Numbers as shades."""

from __future__ import annotations

import numpy as np

from handgrad.training.report.heatmap import BLUE, MOST, ORANGE, shades
from tests.training.html import opacity, pictures


def test_colours_tell_the_sign_and_opacity_the_size() -> None:
    (pixels,) = pictures(shades(np.array([[-1.0, -0.5, 0.0], [0.2, 1.0, 3.0]])))
    np.testing.assert_array_equal(pixels[0, 0, :3], BLUE)
    np.testing.assert_array_equal(pixels[1, 1, :3], ORANGE)
    np.testing.assert_array_equal(pixels[..., 3], [[255, 128, 0], [51, 255, 255]])


def test_many_values_are_averaged() -> None:
    values = np.random.default_rng(0).uniform(0, 1, (3 * MOST, 1000))
    (shown,) = opacity(shades(values))
    assert shown.shape == (MOST, MOST)
    assert abs(shown.mean() - values.mean()) < 0.002
    np.testing.assert_allclose(shown[0, 0], values[:3, :6].mean(), atol=0.01)
