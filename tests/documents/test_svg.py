"""Drawings: what data say is only shown, numbers are short, and axes have round ones."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from handgrad.documents import svg
from handgrad.documents.axes import (
    Axes,
    AxisScale,
    log_ticks,
    plain_ticks,
    short,
    spread,
    whole,
    whole_ticks,
)

HOSTILE = "\"><script>alert(1)</script> & 'a'"
PACKAGE = Path(svg.__file__).parents[1]


def test_names_from_data_are_only_shown() -> None:
    parts = [svg.text(1, 2, HOSTILE, class_=HOSTILE), svg.rect(0, 0, 1, 1, style=HOSTILE)]
    drawing = ElementTree.fromstring(svg.drawing(30, 20, HOSTILE, parts))
    text, rect = drawing
    assert (text.text, text.get("class"), rect.get("style")) == (HOSTILE,) * 3
    assert drawing.get("aria-label") == HOSTILE
    assert drawing.get("viewBox") == "0 0 30 20"


def test_numbers_are_short() -> None:
    given = (2.0, -1e-9, 1 / 3, 1234567.891, 0.125)
    assert [svg.number(each) for each in given] == ["2", "0", "0.33", "1234567.89", "0.12"]


def test_an_attribute_of_none_is_left_out() -> None:
    assert svg.line([(0, 1), (2.5, 3)], stroke_dasharray=None, class_="a") == (
        '<path d="M0 1L2.5 3" fill="none" stroke="currentColor" class="a"/>'
    )
    assert svg.text(1, 2, "a", "middle", turned=-90) == (
        '<text x="1" y="2" text-anchor="middle" transform="rotate(-90 1 2)">a</text>'
    )


def test_no_other_module_writes_elements() -> None:
    """One way to escape and to write numbers: elements are made in documents/svg.py alone."""
    written = re.compile(r"""["']<(?:svg|g|path|rect|circle|text|tspan|image|clipPath)\b[ >]""")
    found = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if written.search(file.read_text("utf-8"))
    }
    assert found == set()


def test_ticks() -> None:
    assert plain_ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert plain_ticks(0.93, 1.0) == [0.94, 0.96, 0.98, 1.0]
    assert whole_ticks(1, 3) == [1, 2, 3]
    assert whole_ticks(0.6, 1.4) == [1]
    assert log_ticks(0.02, 30) == pytest.approx([0.03, 0.1, 0.3, 1, 3, 10, 30])
    assert [short(each) for each in (1e-5, 0.05, 2, 0)] == ["1e-5", "0.05", "2", "0"]
    assert whole(1200) == "1,200"


def test_names_do_not_overlap() -> None:
    heights = spread([250.0] * 6, 237)
    assert all(b - a >= 14.9 for a, b in pairwise(heights))
    assert heights[-1] <= 237
    assert spread([10, 40, 90], 237) == [10, 40, 90]


def test_a_scale_leads_from_values_to_pixels() -> None:
    assert [AxisScale(1, 3, 100, 0)(each) for each in (1, 1.5, 3)] == [100, 75, 0]
    assert [AxisScale(1, 100, 0, 50, log=True)(each) for each in (1, 10, 100)] == [0, 25, 50]


def test_the_numbers_of_axes_stand_where_they_are() -> None:
    axes = Axes(
        AxisScale(0, 10, 50, 250), AxisScale(0, 1, 200, 20), "epoch", "loss", x_format=whole
    )
    said = {note.said: note for note in axes.notes()}
    assert {"0.2", "1", "10", "epoch", "loss"} <= said.keys()
    assert (said["10"].x, said["10"].anchor) == (250, "middle")
    assert (said["0.2"].y, said["0.2"].anchor) == (axes.down(0.2) + 4, "end")
    assert axes.place(5, 0.5) == (150, 110)
    assert axes.grid()[0] == [(50, 200), (250, 200)]
    drawn = "".join(axes.drawn())
    assert drawn.count("<path") == len(axes.grid())
    assert drawn.count("<text") == len(list(axes.notes()))
