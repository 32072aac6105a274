"""Pictures of numbers, as SVG and as TikZ: a matrix as shades, and lines on two axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.documents import svg
from handgrad.documents.axes import Axes, AxisScale, Note, spread
from handgrad.documents.document import Content, Figure
from handgrad.documents.tex_text import escape as tex_escape
from handgrad.training.report.heatmap import condensed

#: The colours of forward and backward in a page of notes, and others.
_COLOURS: Final = (*svg.COLOURS.values(), "#6b6f76", "#2f7d4f", "#8a5a00")
_CELLS: Final = 48
_SIDE: Final = 288.0
_WIDTH, _HEIGHT = 340.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 96.0, 12.0, 40.0


def shades(values: Array, caption: Content, description: str) -> Figure:
    """A symmetric matrix: the larger a number, the darker its cell; blue above 0, red below.

    Where there are more than 48 rows, neighbours are averaged.
    """
    drawn = condensed(condensed(np.asarray(values, dtype=np.float64), 0, _CELLS), 1, _CELLS)
    most = float(np.max(np.abs(drawn), initial=0.0)) or 1.0
    side = _SIDE / max(len(drawn), 1)
    cells, tikz = [], []
    for i, each in enumerate(drawn):
        for j, value in enumerate(each):
            share = abs(value) / most
            kind = "forward" if value >= 0 else "backward"
            fill = svg.COLOURS[kind]
            cells.append(svg.rect(j * side, i * side, side, side, fill=fill, fill_opacity=share))
            tikz.append(
                rf"\fill[{kind}, opacity={share:.3f}] ({j * side:.2f},{i * side:.2f}) "
                rf"rectangle ++({side:.2f},{side:.2f});"
            )
    return Figure(
        svg.drawing(_SIDE, _SIDE, description, cells), _picture(tikz), caption, description
    )


class NamedCurve(NamedTuple):
    """A line and its name, which stands at its right end."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False


def lines(
    series: Sequence[NamedCurve],
    caption: Content,
    description: str,
    *,
    x_label: str,
    y_label: str,
    logarithmic: Literal["", "y", "xy"] = "",
) -> Figure:
    """Lines over a common axis; on logarithmic axes only what is above 0 is drawn."""
    points = [
        [
            (x, y)
            for x, y in zip(each.x, each.y, strict=True)
            if math.isfinite(y) and (x > 0 or "x" not in logarithmic) and (y > 0 or not logarithmic)
        ]
        for each in series
    ]
    xs = [x for line in points for x, _ in line] or [0.0, 1.0]
    ys = [y for line in points for _, y in line] or [0.0, 1.0]
    axes = Axes(
        _scale(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT, "x" in logarithmic),
        _scale(min(ys), max(ys), _HEIGHT - _BOTTOM, _TOP, "y" in logarithmic),
        x_label,
    )
    drawn = [*axes.drawn()]
    tikz = [
        rf"\draw[opacity=0.2] ({x:.1f},{y:.1f}) -- ({end:.1f},{y:.1f});"
        for (x, y), (end, _) in axes.grid()
    ]
    tikz += [_node(note) for note in axes.notes()]
    ends: list[tuple[float, float, str, str]] = []
    for i, (each, line) in enumerate(zip(series, points, strict=True)):
        if not line:
            continue
        colour = _COLOURS[i % len(_COLOURS)]
        placed = [axes.place(*point) for point in line]
        dashes = svg.DASHES if each.dashed else None
        drawn.append(svg.line(placed, stroke=colour, stroke_width=1.6, stroke_dasharray=dashes))
        style = "dashed" if each.dashed else "solid"
        path = " -- ".join(f"({x:.1f},{y:.1f})" for x, y in placed)
        tikz.append(rf"\draw[{style}] {path};")
        ends.append((placed[-1][1], placed[-1][0], each.name, colour))
    ends.sort()
    heights = spread([y for y, *_ in ends], _HEIGHT - _BOTTOM)
    for y, (_, x, name, colour) in zip(heights, ends, strict=True):
        drawn.append(svg.text(x + 6, y + 4, name, fill=colour))
        tikz.append(_node(Note(x + 6, y + 4, name, "start")))
    label = f"{description} {y_label} over {x_label}."
    look: dict[str, svg.Attribute] = {"font_size": 12, "fill": "currentColor"}
    drawing = svg.drawing(_WIDTH, _HEIGHT, label, drawn, **look)
    return Figure(drawing, _picture(tikz), caption, description)


def _node(note: Note) -> str:
    """A text in TikZ."""
    side = {"start": "base west", "middle": "base", "end": "base east"}[note.anchor]
    return rf"\node[anchor={side}] at ({note.x:.1f},{note.y:.1f}) {{{tex_escape(note.said)}}};"


def _scale(low: float, high: float, start: float, end: float, log: bool) -> AxisScale:
    """A scale with room at its ends where it would have no length, or begin on a line."""
    if log:
        return AxisScale(low / 1.1, high * 1.1, start, end, log)
    room = 0.5 if low == high else 0.0
    return AxisScale(low - room, high + room, start, end)


def _picture(parts: Sequence[str]) -> str:
    """A TikZ picture in pixels, y downwards, with the colours of its shades."""
    colours = "".join(
        rf"\definecolor{{{name}}}{{HTML}}{{{colour[1:].upper()}}}%" + "\n"
        for name, colour in svg.COLOURS.items()
    )
    body = "\n".join(f"  {part}" for part in parts)
    style = r"x=0.75pt, y=-0.75pt, font=\footnotesize, every node/.style={inner sep=0pt}"
    return f"{colours}\\begin{{tikzpicture}}[{style}]\n{body}\n\\end{{tikzpicture}}"
