"""Predicted numbers over right ones: every point where it belongs, nothing where there is none."""

from __future__ import annotations

import re

import numpy as np
import pytest

from handgrad.training.report.scatter import MOST_POINTS, scatter
from tests.training.html import check_html


def points(text: str) -> np.ndarray:
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', text)
    return np.array(found, dtype=float)


def test_equal_numbers_lie_on_the_line() -> None:
    values = np.linspace(-5, 2e6, 50)
    text = scatter(values, values)
    check_html(text)
    x, y = points(text).T
    assert len(x) == 50
    np.testing.assert_allclose(x + y, x[0] + y[0], atol=0.2)
    assert ">2000000<" in text


def test_too_large_a_prediction_lies_above_the_line() -> None:
    right, predicted = np.array([0.0, 1.0, 2.0]), np.array([0.5, 1.0, 2.0])
    (x0, y0), (x1, y1), _ = points(scatter(right, predicted))
    assert x0 + y0 < x1 + y1


def test_many_examples_are_drawn_in_part() -> None:
    values = np.arange(10.0 * MOST_POINTS)
    assert len(points(scatter(values, values))) == MOST_POINTS


@pytest.mark.parametrize("values", [[1.0], [3.0, 3.0], [1.0, np.nan], [0.0, np.inf]])
def test_numbers_without_a_spread_have_no_drawing(values: list[float]) -> None:
    assert scatter(np.array(values), np.array(values)) == ""
