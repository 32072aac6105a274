"""The confusion matrix as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from handgrad.arrays import Array
from handgrad.documents import svg

#: Up to so many classes a cell has room for a share.
MOST_WITH_SHARES = 6
#: Sides of a cell: many classes have small ones.
_SMALL, _LARGE = 30, 68
#: A matrix of few classes becomes about so wide.
_WIDE = 300
#: Room for the names of the two axes, and the width of a letter.
_AXIS, _LETTER = 18, 7.2


def confusion_matrix(targets: Array, predictions: Array, classes: int) -> Array:
    """Counts (true class, predicted class)."""
    flat = targets.astype(np.int64) * classes + predictions
    return np.bincount(flat, minlength=classes**2).reshape(classes, classes)


def matrix_chart(counts: Array, names: Sequence[str]) -> str:
    """True classes down, predicted classes across; the stronger the colour, the more examples.

    The diagonal (right) and the rest (wrong) have a colour and a scale each: errors would be
    invisible beside the hits. Where there is room, a cell also has its share of the true class.
    """
    cell = min(max(_SMALL, _WIDE // len(names)), _LARGE)
    longest = max(len(name) for name in names)
    slanted = longest * _LETTER > cell
    left = _AXIS + 10 + longest * _LETTER
    top = _AXIS + (10 + longest * 5.4 if slanted else 24)
    span = cell * len(names)
    width = left + span + (longest * 3.5 if slanted else 4)
    centre = left + span / 2
    middle = top + span / 2
    parts = [
        svg.text(centre, 12, "predicted", "middle"),
        svg.text(12, middle, "true", "middle", turned=-90),
    ]
    wrong = counts - np.diag(np.diag(counts))
    most = {True: max(int(np.diag(counts).max()), 1), False: max(int(wrong.max()), 1)}
    anchor: svg.Anchor
    for i, name in enumerate(names):
        x, y = left + cell * (i + 0.5), top + cell * (i + 0.5)
        parts.append(svg.text(left - 8, y + 4, name, "end"))
        turned, anchor = (-50.0, "start") if slanted else (0.0, "middle")
        parts.append(svg.text(x, top - 6, name, anchor, turned=turned))
        for j, other in enumerate(names):
            strength = 0.25 + 0.75 * math.sqrt(int(counts[i, j]) / most[i == j])
            said = f"{name} read as {other}: {counts[i, j]}"
            lines = [f"{counts[i, j]}"]
            if len(names) <= MOST_WITH_SHARES:
                lines.append(f"{100 * counts[i, j] / max(counts[i].sum(), 1):.1f} %")
            corner = left + cell * j, top + cell * i
            parts += _cell(*corner, cell, said, lines, strength, right=i == j)
    label = "Confusion matrix: true class down, predicted class across"
    return svg.drawing(width, top + span + 4, label, parts, class_="matrix")


def _cell(
    x: float,
    y: float,
    size: int,
    said: str,
    lines: Sequence[str],
    strength: float,
    *,
    right: bool,
) -> Iterator[svg.Markup]:
    """A cell with its count, and its share beneath; a shade alone where the count is 0."""
    box = x + 1, y + 1, size - 2, size - 2
    if lines[0] == "0":
        yield svg.rect(*box, rx=3, class_="none")
        return
    kind = "right" if right else "wrong"
    title = svg.element("title", svg.words(said))
    yield svg.rect(*box, title, rx=3, class_=kind, fill_opacity=strength)
    shade = "weak" if strength < 0.5 else "middle" if strength < 0.78 else "strong"
    first = y + size / 2 + 4 - 8 * (len(lines) - 1)
    for i, line in enumerate(lines):
        yield svg.text(x + size / 2, first + 16 * i, line, "middle", class_=shade)
