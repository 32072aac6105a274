"""Numbers that were predicted, over the right ones, as SVG text."""

from __future__ import annotations

import numpy as np

from handgrad.arrays import Array
from handgrad.printing import plain
from handgrad.training.report.charts import plain_ticks

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

    def share(value: float) -> float:
        return _SIDE * (value - low) / (high - low)

    bottom = _TOP + _SIDE
    parts = [
        f'<svg class="chart" viewBox="0 0 {_LEFT + _SIDE + _RIGHT:g} {bottom + _BELOW:g}" '
        'role="img" aria-label="Predicted numbers over right ones">'
    ]
    for tick in plain_ticks(low, high, 3):
        x, y, number = _LEFT + share(tick), bottom - share(tick), plain(tick)
        parts.append(
            f'<path class="grid" d="M{_LEFT:g} {y:.1f}h{_SIDE:g}"/>'
            f'<text x="{_LEFT - 8:g}" y="{y + 4:.1f}" class="end">{number}</text>'
            f'<text x="{x:.1f}" y="{bottom + 18:g}" class="mid">{number}</text>'
        )
    parts.append(
        f'<path class="mark" d="M{_LEFT:g} {bottom:g}L{_LEFT + _SIDE:g} {_TOP:g}"/>'
        f'<text x="{_LEFT + _SIDE / 2:g}" y="{bottom + 38:g}" class="mid">right</text>'
        f'<text transform="translate(14 {_TOP + _SIDE / 2:g}) rotate(-90)" class="mid">predicted'
        '</text><g style="color:var(--forward)" fill-opacity="0.55">'
    )
    parts += [
        f'<circle cx="{_LEFT + share(x):.1f}" cy="{bottom - share(y):.1f}" r="2.6"/>'
        for x, y in points.tolist()
    ]
    return "".join([*parts, "</g></svg>"])
