"""The confusion matrix as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from handgrad.arrays import Array

CELL = 30


def confusion_matrix(targets: Array, predictions: Array, classes: int) -> Array:
    """Counts (true class, predicted class)."""
    flat = targets.astype(np.int64) * classes + predictions
    return np.bincount(flat, minlength=classes**2).reshape(classes, classes)


def matrix_chart(counts: Array, names: Sequence[str]) -> str:
    """True classes down, predicted classes across; the stronger the colour, the more examples.

    The diagonal (right) and the rest (wrong) have a colour and a scale each: errors would be
    invisible beside the hits.
    """
    longest = max(len(name) for name in names)
    slanted = longest > 3
    left = 24 + longest * 7.2
    top = (18 + longest * 5.4) if slanted else 24
    width, height = left + CELL * len(names) + 4, top + CELL * len(names) + 26
    if slanted:
        width += longest * 3.5
    wrong = counts - np.diag(np.diag(counts))
    most = {True: max(int(np.diag(counts).max()), 1), False: max(int(wrong.max()), 1)}
    parts = [
        f'<svg class="matrix" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'style="max-width:{width:.0f}px" aria-label="Confusion matrix: true class down, '
        f'predicted class across">'
    ]
    for i, name in enumerate(names):
        middle = top + CELL * (i + 0.5)
        parts.append(f'<text x="{left - 8}" y="{middle + 4:.0f}" class="end">{escape(name)}</text>')
        centre = left + CELL * (i + 0.5)
        if slanted:
            parts.append(
                f'<text transform="translate({centre:.0f} {top - 6:.0f}) rotate(-50)">'
                f"{escape(name)}</text>"
            )
        else:
            parts.append(f'<text x="{centre:.0f}" y="{top - 8}" class="mid">{escape(name)}</text>')
        for j in range(len(names)):
            count = int(counts[i, j])
            right = i == j
            x, y = left + CELL * j, top + CELL * i
            if not count:
                parts.append(f'<rect class="none" x="{x + 1:.0f}" y="{y + 1:.0f}" {_SIZE}/>')
                continue
            strength = 0.25 + 0.75 * math.sqrt(count / most[right])
            shade = "weak" if strength < 0.5 else "middle" if strength < 0.78 else "strong"
            parts.append(
                f'<rect class="{"right" if right else "wrong"}" x="{x + 1:.0f}" y="{y + 1:.0f}" '
                f'{_SIZE} fill-opacity="{strength:.2f}"><title>{escape(name)} read as '
                f"{escape(names[j])}: {count}</title></rect>"
                f'<text x="{x + CELL / 2:.0f}" y="{y + CELL / 2 + 4:.0f}" class="mid {shade}">'
                f"{count}</text>"
            )
    parts.append(
        f'<text x="{left + CELL * len(names) / 2:.0f}" y="{height - 8:.0f}" class="mid">'
        f"predicted across, true down</text></svg>"
    )
    return "".join(parts)


_SIZE = f'width="{CELL - 2}" height="{CELL - 2}" rx="3"'
