"""Losses, optimizers, data sets and reports as they are printed, and as notebooks show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.data import Dataset, Pixels, Sequences


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (hg.optimizers.Adam(), "Adam(lr=0.001)"),
        (hg.optimizers.Adam(0.1, betas=(0.8, 0.9)), "Adam(lr=0.1, betas=(0.8, 0.9))"),
        (hg.optimizers.SGD(0.1, weight_decay=0.01), "SGD(lr=0.1, weight_decay=0.01)"),
        (hg.losses.CrossEntropy(), "CrossEntropy()"),
        (
            hg.losses.CrossEntropy(label_smoothing=0.1, class_axis=-1),
            "CrossEntropy(label_smoothing=0.1, class_axis=-1)",
        ),
        (
            hg.losses.CrossEntropy(weight=np.ones(3, np.float32)),
            "CrossEntropy(weight=<float32 (3,)>)",
        ),
        (Pixels(np.ones((4, 2), np.uint8)), "<Pixels (4, 2) of uint8, of which 255 becomes 1>"),
        (
            Sequences.of([np.ones((3, 2)), np.ones((5, 2))]),
            "<Sequences: 2 of 3 to 5 steps of shape (2,)>",
        ),
    ],
)
def test_an_object_is_printed_in_a_line(made: Any, text: str) -> None:
    assert repr(made) == text


def test_a_rate_that_changed_is_printed_as_it_is() -> None:
    optimizer = hg.optimizers.Adam()
    optimizer.lr = 0.5
    assert repr(optimizer) == "Adam(lr=0.5)"


def test_a_data_set_is_printed_without_its_numbers() -> None:
    data = hg.data.load("digits")
    assert repr(data) == (
        "<Dataset digits: 1,438 for train, 359 for test of shape (1, 8, 8), "
        "10 classes (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)>"
    )
    html = data._repr_html_()
    assert "1,438" in html
    assert "validation" not in html
    x, y = np.zeros((3, 2), np.float32), np.array([0, 1, 11])
    many = Dataset("<b>", x, y, x, y, tuple("abcdefghijkl"), x, y)
    assert repr(many).endswith("12 classes (a, b, c, d, e, f, g, h, i, j, ...)>")
    assert "&lt;b&gt;" in many._repr_html_()
    assert "validation" in many._repr_html_()


def test_a_report_is_a_line_a_text_and_a_table_of_a_notebook() -> None:
    report = hg.check("relu")
    assert repr(report).startswith("<CheckReport of relu: right, ")
    assert repr(report).endswith(" situations, 0 faults>")
    assert "every gradient is right" in str(report)
    assert "every gradient is right" in report._repr_html_()
    assert report._repr_html_().startswith("<pre")
