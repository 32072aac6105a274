"""Charts of a sequence on one axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from handgrad.arrays import Array
from handgrad.training.report.charts import plain_ticks
from handgrad.training.report.heatmap import BLUE, GREY, ORANGE, drawing, placed, shades

#: Heights of the names of panels, of the space between panels, and of the axis.
_NAMES, _BETWEEN, _AXIS = 94, 8, 36


@dataclass(frozen=True)
class Panel:
    """Values (rows, time) from −1 to 1; where `signed` two colours, otherwise grey from 0 to 1."""

    name: str
    values: Array
    size: float
    signed: bool = False


def along_time(panels: Sequence[Panel], *, cell: float, label: str, down: bool = False) -> str:
    """The panels above one another, time running across, each `size` high and a step `cell` wide.

    With `down` time runs down and they stand side by side, as for images that are read row by row.
    """
    steps = panels[0].values.shape[1]
    length = cell * steps
    before = 22 if down else _NAMES
    parts = []
    position = float(_AXIS if down else 2)
    for panel in panels:
        colours = {"above": ORANGE, "below": BLUE} if panel.signed else {"above": GREY}
        name = escape(panel.name)
        if down:
            picture = shades(panel.values.T, **colours)
            parts.append(
                f'<text x="{position + panel.size / 2:.1f}" y="14" class="mid">{name}</text>'
            )
            parts.append(placed(picture, position, before, panel.size, length))
        else:
            picture = shades(panel.values, **colours)
            middle = position + panel.size / 2 + 4
            parts.append(f'<text x="{before - 8}" y="{middle:.1f}" class="end">{name}</text>')
            parts.append(placed(picture, before, position, length, panel.size))
        position += panel.size + _BETWEEN
    for step in _ticks(steps):
        at = before + cell * (step - 0.5)
        if down:
            parts.append(f'<text x="{_AXIS - 8}" y="{at + 4:.1f}" class="end">{step}</text>')
        else:
            parts.append(f'<text x="{at:.1f}" y="{position + 8:.1f}" class="mid">{step}</text>')
    if down:
        return drawing(position, before + length + 2, label, parts)
    parts.append(f'<text x="{before - 8}" y="{position + 8:.1f}" class="end">step</text>')
    return drawing(before + length + 4 * len(str(steps)) + 2, position + 14, label, parts)


def _ticks(steps: int) -> list[int]:
    """Steps to be numbered: the first, and round ones that are not too near to it."""
    if steps < 3:
        return list(range(1, steps + 1))
    round_ones = [int(tick) for tick in plain_ticks(1, steps) if tick % 1 == 0]
    return [1, *(tick for tick in round_ones if tick > 1 + steps / 8)]


def by_mean(values: Array) -> Array:
    """Units (units, time) in the order of their means, the highest first."""
    order: Array = np.argsort(-values.mean(axis=1), kind="stable")
    return values[order]
