"""The confusion matrix as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from handgrad.arrays import Array

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
        f'<svg class="matrix" viewBox="0 0 {width:.0f} {top + span + 4:.0f}" role="img" '
        f'style="width:{width:.0f}px" aria-label="Confusion matrix: true class down, '
        f'predicted class across">',
        f'<text x="{centre:.0f}" y="12" class="mid">predicted</text>',
        f'<text transform="translate(12 {middle:.0f}) rotate(-90)" class="mid">true</text>',
    ]
    wrong = counts - np.diag(np.diag(counts))
    most = {True: max(int(np.diag(counts).max()), 1), False: max(int(wrong.max()), 1)}
    for i, name in enumerate(names):
        x, y = left + cell * (i + 0.5), top + cell * (i + 0.5)
        parts.append(f'<text x="{left - 8:.0f}" y="{y + 4:.0f}" class="end">{escape(name)}</text>')
        turned = f"translate({x:.0f} {top - 6:.0f})" + (" rotate(-50)" if slanted else "")
        kind = "" if slanted else ' class="mid"'
        parts.append(f'<text transform="{turned}"{kind}>{escape(name)}</text>')
        for j, other in enumerate(names):
            strength = 0.25 + 0.75 * math.sqrt(int(counts[i, j]) / most[i == j])
            said = f"{name} read as {other}: {counts[i, j]}"
            lines = [f"{counts[i, j]}"]
            if len(names) <= MOST_WITH_SHARES:
                lines.append(f"{100 * counts[i, j] / max(counts[i].sum(), 1):.1f} %")
            corner = left + cell * j, top + cell * i
            parts.append(_cell(*corner, cell, said, lines, strength, right=i == j))
    return "".join((*parts, "</svg>"))


def _cell(
    x: float,
    y: float,
    size: int,
    said: str,
    lines: Sequence[str],
    strength: float,
    *,
    right: bool,
) -> str:
    """A cell with its count, and its share beneath; a shade alone where the count is 0."""
    box = f'x="{x + 1:.0f}" y="{y + 1:.0f}" width="{size - 2}" height="{size - 2}" rx="3"'
    if lines[0] == "0":
        return f'<rect class="none" {box}/>'
    shade = "weak" if strength < 0.5 else "middle" if strength < 0.78 else "strong"
    first = y + size / 2 + 4 - 8 * (len(lines) - 1)
    text = "".join(
        f'<text x="{x + size / 2:.0f}" y="{first + 16 * i:.0f}" class="mid {shade}">{line}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f'<rect class="{"right" if right else "wrong"}" {box} fill-opacity="{strength:.2f}">'
        f"<title>{escape(said)}</title></rect>{text}"
    )
