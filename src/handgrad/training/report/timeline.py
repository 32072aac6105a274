"""Charts of a sequence on one axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from handgrad.arrays import Array
from handgrad.documents import svg
from handgrad.documents.axes import plain_ticks
from handgrad.training.report.heatmap import BLUE, GREY, ORANGE, placed, shades

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
        if down:
            picture = shades(panel.values.T, **colours)
            parts.append(svg.text(position + panel.size / 2, 14, panel.name, "middle"))
            parts.append(placed(picture, position, before, panel.size, length))
        else:
            picture = shades(panel.values, **colours)
            parts.append(svg.text(before - 8, position + panel.size / 2 + 4, panel.name, "end"))
            parts.append(placed(picture, before, position, length, panel.size))
        position += panel.size + _BETWEEN
    for step in _ticks(steps):
        at = before + cell * (step - 0.5)
        if down:
            parts.append(svg.text(_AXIS - 8, at + 4, str(step), "end"))
        else:
            parts.append(svg.text(at, position + 8, str(step), "middle"))
    if down:
        return svg.drawing(position, before + length + 2, label, parts, class_="map")
    parts.append(svg.text(before - 8, position + 8, "step", "end"))
    width = before + length + 4 * len(str(steps)) + 2
    return svg.drawing(width, position + 14, label, parts, class_="map")


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
