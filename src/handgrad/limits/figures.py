"""Pictures of numbers, as SVG and as TikZ: a matrix as shades, and lines on two axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final, Literal, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.documents.document import Content, Figure
from handgrad.documents.tex_text import escape as tex_escape
from handgrad.training.report.charts import log_ticks, number, plain_ticks

#: The colours of forward and backward in a page of notes, and others.
_COLOURS: Final = ("#17568f", "#a3301c", "#6b6f76", "#2f7d4f", "#8a5a00")
_CELLS: Final = 48
_SIDE: Final = 288.0
_WIDTH, _HEIGHT = 340.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 96.0, 12.0, 40.0


def shades(values: Array, caption: Content, description: str) -> Figure:
    """A symmetric matrix: the larger a number, the darker its cell; blue above 0, red below.

    Where there are more than 48 rows, neighbours are averaged.
    """
    drawn = _condensed(np.asarray(values, dtype=np.float64))
    most = float(np.max(np.abs(drawn), initial=0.0)) or 1.0
    side = _SIDE / max(len(drawn), 1)
    cells, tikz = [], []
    for i, each in enumerate(drawn):
        for j, value in enumerate(each):
            share = abs(value) / most
            colour = _COLOURS[0] if value >= 0 else _COLOURS[1]
            cells.append(
                f'<rect x="{j * side:.2f}" y="{i * side:.2f}" width="{side:.2f}" '
                f'height="{side:.2f}" fill="{colour}" fill-opacity="{share:.3f}"/>'
            )
            name = "nngpplus" if value >= 0 else "nngpminus"
            tikz.append(
                rf"\fill[{name}, opacity={share:.3f}] ({j * side:.2f},{i * side:.2f}) "
                rf"rectangle ++({side:.2f},{side:.2f});"
            )
    svg = _svg(cells, _SIDE, _SIDE, description)
    return Figure(svg, _picture(tikz), caption, description)


def _condensed(values: Array) -> Array:
    """Means of blocks, so that at most `_CELLS` rows and columns are left."""
    step = math.ceil(len(values) / _CELLS) or 1
    if step == 1:
        return values
    starts = np.arange(0, len(values), step)
    sums = np.add.reduceat(np.add.reduceat(values, starts, axis=0), starts, axis=1)
    counts = np.diff([*starts, len(values)])
    return np.asarray(sums / np.outer(counts, counts))


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
    across = _Scale(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT, "x" in logarithmic)
    down = _Scale(min(ys), max(ys), _HEIGHT - _BOTTOM, _TOP, "y" in logarithmic)
    svg: list[str] = []
    tikz: list[str] = []

    def text(x: float, y: float, words: str, anchor: str, colour: str = "currentColor") -> None:
        svg.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12" '
            f'fill="{colour}">{escape(words)}</text>'
        )
        side = {"start": "base west", "middle": "base", "end": "base east"}[anchor]
        tikz.append(rf"\node[anchor={side}] at ({x:.1f},{y:.1f}) {{{tex_escape(words)}}};")

    for tick in down.ticks():
        y = down(tick)
        svg.append(
            f'<path d="M{_LEFT:g} {y:.1f}H{_WIDTH - _RIGHT:g}" stroke="currentColor" '
            'stroke-opacity="0.2" fill="none"/>'
        )
        tikz.append(rf"\draw[opacity=0.2] ({_LEFT:g},{y:.1f}) -- ({_WIDTH - _RIGHT:g},{y:.1f});")
        text(_LEFT - 6, y + 4, number(tick), "end")
    for tick in across.ticks():
        text(across(tick), _HEIGHT - _BOTTOM + 16, number(tick), "middle")
    text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, x_label, "middle")
    for i, (each, line) in enumerate(zip(series, points, strict=True)):
        if not line:
            continue
        colour = _COLOURS[i % len(_COLOURS)]
        placed = [(across(x), down(y)) for x, y in line]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
        dash = ' stroke-dasharray="4 4"' if each.dashed else ""
        svg.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        style = "dashed" if each.dashed else "solid"
        tikz.append(
            rf"\draw[{style}] " + " -- ".join(f"({x:.1f},{y:.1f})" for x, y in placed) + ";"
        )
        text(placed[-1][0] + 6, placed[-1][1] + 4, each.name, "start", colour)
    drawing = _svg(svg, _WIDTH, _HEIGHT, f"{description} {y_label} over {x_label}.")
    return Figure(drawing, _picture(tikz), caption, description)


def _svg(parts: Sequence[str], width: float, height: float, words: str) -> str:
    """A drawing of parts, with `words` for who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-label="{escape(words)}">'
        + "".join(parts)
        + "</svg>"
    )


class _Scale:
    """From values to pixels."""

    def __init__(
        self, low: float, high: float, start: float, end: float, logarithmic: bool
    ) -> None:
        if logarithmic:
            low, high = low / 1.1, high * 1.1
        elif low == high:
            low, high = low - 0.5, high + 0.5
        self.low, self.high, self.start, self.end = low, high, start, end
        self.logarithmic = logarithmic

    def __call__(self, value: float) -> float:
        scale = math.log if self.logarithmic else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        return (log_ticks if self.logarithmic else plain_ticks)(self.low, self.high)


def _picture(parts: Sequence[str]) -> str:
    """A TikZ picture in pixels, y downwards, with the colours of its shades."""
    colours = "".join(
        rf"\definecolor{{{name}}}{{HTML}}{{{colour[1:].upper()}}}%" + "\n"
        for name, colour in zip(("nngpplus", "nngpminus"), _COLOURS, strict=False)
    )
    body = "\n".join(f"  {part}" for part in parts)
    style = r"x=0.75pt, y=-0.75pt, font=\footnotesize, every node/.style={inner sep=0pt}"
    return f"{colours}\\begin{{tikzpicture}}[{style}]\n{body}\n\\end{{tikzpicture}}"
