"""Numbers that were predicted, over the right ones, as SVG text."""

from __future__ import annotations

from functools import partial

import numpy as np

from handgrad.arrays import Array
from handgrad.documents import svg
from handgrad.documents.axes import Axes, AxisScale, plain_ticks
from handgrad.printing import plain

_SIDE, _LEFT, _TOP, _BELOW, _RIGHT = 300.0, 104.0, 12.0, 44.0, 40.0
#: Points beyond these only cover one another.
MOST_POINTS = 500


def scatter(right: Array, predicted: Array) -> str:
    """A point for each example (N,), on the line where both are the same; none for no spread."""
    chosen = np.linspace(0, len(right) - 1, min(len(right), MOST_POINTS)).round().astype(int)
    points = np.stack([right, predicted], axis=1)[chosen]
    low, high = float(points.min()), float(points.max())
    if not (np.isfinite(points).all() and low < high):
        return ""
    margin = 0.03 * (high - low)
    low, high = low - margin, high + margin

    bottom, right_end = _TOP + _SIDE, _LEFT + _SIDE
    axes = Axes(
        AxisScale(low, high, _LEFT, right_end),
        AxisScale(low, high, bottom, _TOP),
        x_label="right",
        y_label="predicted",
        x_format=plain,
        y_format=plain,
        ticks=partial(plain_ticks, wanted=3),
    )
    dots = [svg.circle(*axes.place(x, y), 2.6) for x, y in points.tolist()]
    parts = [
        *axes.drawn(),
        svg.line([(_LEFT, bottom), (right_end, _TOP)], class_="mark"),
        svg.element("g", *dots, style="fill:var(--forward)", fill_opacity=0.55),
    ]
    label = "Predicted numbers over right ones"
    return svg.drawing(right_end + _RIGHT, bottom + _BELOW, label, parts, class_="chart")
