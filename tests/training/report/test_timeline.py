"""Panels on one axis of time."""

from __future__ import annotations

import re

import numpy as np
import pytest

from handgrad.training.report.timeline import Panel, along_time, by_mean
from tests.training.html import check_html, pictures


def panels(steps: int) -> list[Panel]:
    signed = np.linspace(-1, 1, 3 * steps).reshape(3, steps)
    return [Panel("input", signed, 60, signed=True), Panel("a < b", np.abs(signed[:2]), 40)]


@pytest.mark.parametrize("steps", [1, 2, 3, 11, 100])
def test_time_runs_across_all_panels(steps: int) -> None:
    text = along_time(panels(steps), cell=4, label="time")
    check_html(text)
    assert [p.shape[:2] for p in pictures(text)] == [(3, steps), (2, steps)]
    assert re.findall(r'<image x="([\d.]+)"', text) == ["94", "94"]
    assert re.findall(r'<image [^>]*width="([\d.]+)"', text) == [f"{4 * steps}"] * 2
    numbers = [int(found) for found in re.findall(r">(\d+)</text>", text)]
    assert numbers[0] == 1
    assert numbers == sorted(set(numbers))
    assert numbers[-1] <= steps


def test_the_last_number_has_room() -> None:
    text = along_time(panels(100), cell=4, label="time")
    width = float(re.findall(r'viewBox="0 0 ([\d.]+) ', text)[0])
    last = re.findall(r'<text x="([\d.]+)" [^>]*>100</text>', text)
    assert width - float(last[0]) > 3 * 13 * 0.62 / 2  # half of three digits of 13 pixels


def test_time_runs_down() -> None:
    text = along_time(panels(5), cell=4, label="time", down=True)
    check_html(text)
    first, second = pictures(text)
    assert (first.shape[:2], second.shape[:2]) == ((5, 3), (5, 2))
    np.testing.assert_array_equal(first[:, :, 3], first[::-1, ::-1, 3])
    assert re.findall(r'<image [^>]*y="([\d.]+)"', text) == ["22", "22"]


def test_units_stand_in_the_order_of_their_means() -> None:
    values = np.array([[0.0, 0.2], [0.9, 0.7], [0.5, -0.6]])
    np.testing.assert_array_equal(by_mean(values), values[[1, 0, 2]])
