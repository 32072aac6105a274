"""Pictures as SVG text, for the examples: shapes, texts, and axes with curves.

A picture carries its own colours, one set for light and one for dark surroundings, and its own
background, so that it reads the same on a page, on GitHub and alone. Positions are in pixels from
the upper left corner.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from handgrad.documents import svg

LABEL_GAP: Final = 16.0

#: The colours by name: what they are in the light, and in the dark.
COLOURS: Final = {
    "paper": ("#fdfcfa", "#15171a"),
    "ink": ("#1c1d20", "#e8e6e1"),
    "muted": ("#5b5e66", "#a3a7af"),
    "rule": ("#e3e1dc", "#33373d"),
    "blue": ("#1f5fa8", "#7db3ee"),
    "orange": ("#b8520f", "#f0a05c"),
    "green": ("#1d7a52", "#5cc795"),
    "purple": ("#8340a0", "#cf9ae6"),
}
FONT: Final = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif"


def output(description: str | None) -> Path:
    """The path of a script's picture: beside itself, or where `-o` says."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    beside = Path(sys.argv[0]).with_suffix(".svg")
    parser.add_argument("-o", type=Path, default=beside, metavar="FILE.svg", help="the picture")
    path: Path = parser.parse_args().o
    return path


def power_of_ten(exponent: int) -> str:
    """10⁻³ for −3."""
    return "1" if exponent == 0 else "10" + str(exponent).translate(_RAISED)


_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Picture:
    """Shapes and texts, drawn one over another; `colour` is a name in COLOURS or any in CSS."""

    def __init__(self, width: int, height: int, label: str) -> None:
        """label: what the picture shows, for those who cannot see it."""
        self.width, self.height, self.label = width, height, label
        self.parts: list[svg.Markup] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: str = "muted",
        *,
        size: float = 13,
        anchor: svg.Anchor = "start",
        bold: bool = False,
        turned: bool = False,
    ) -> None:
        """Text on the line y; anchor: start, middle or end; turned: from bottom to top."""
        self.parts.append(
            svg.text(
                x,
                y,
                text,
                anchor,
                turned=-90 if turned else 0,
                font_size=size,
                font_weight=600 if bold else None,
                fill=_css(colour),
            )
        )

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        colour: str,
        *,
        opacity: float = 1.0,
        outline: bool = False,
    ) -> None:
        paint: dict[str, svg.Attribute] = {
            "fill": _css(colour),
            "fill_opacity": opacity if opacity < 1.0 else None,
        }
        if outline:
            paint = {"fill": "none", "stroke": _css(colour), "stroke_width": 2.5}
        self.parts.append(svg.rect(x, y, width, height, **paint))

    def circle(self, x: float, y: float, radius: float, colour: str, edge: str) -> None:
        self.parts.append(
            svg.circle(x, y, radius, fill=_css(colour), stroke=_css(edge), stroke_width=1.5)
        )

    def line(
        self,
        points: Sequence[svg.Point],
        colour: str,
        *,
        width: float = 2,
        dashed: bool = False,
        clip: str = "",
    ) -> None:
        self.parts.append(
            svg.line(
                points,
                stroke=_css(colour),
                stroke_width=width,
                stroke_linejoin="round",
                stroke_dasharray=svg.DASHES if dashed else None,
                clip_path=f"url(#{clip})" if clip else None,
            )
        )

    def area(self, points: Sequence[svg.Point], colour: str) -> None:
        self.parts.append(svg.line([*points, points[0]], fill=_css(colour), stroke=None))

    def svg(self) -> str:
        """The whole file."""
        light, dark = ("".join(f"--{name}:{c[i]};" for name, c in COLOURS.items()) for i in (0, 1))
        style = (
            f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
            "rect:not([rx]){shape-rendering:crispEdges}"
        )
        parts = [
            svg.element("style", svg.words(style)),
            svg.rect(0, 0, self.width, self.height, rx=10, fill=_css("paper")),
            *self.parts,
        ]
        lines = (svg.Markup(f"\n{part}") for part in parts)
        return svg.drawing(self.width, self.height, self.label, lines, font_family=FONT) + "\n"

    def save(self, path: Path) -> None:
        path.write_text(self.svg(), "utf-8")


class Axes:
    """A frame for curves: ranges of x and y, each linear or logarithmic, and where they lie."""

    def __init__(
        self,
        picture: Picture,
        frame: tuple[float, float, float, float],
        x_range: svg.Point,
        y_range: svg.Point,
        *,
        log_x: bool = False,
        log_y: bool = False,
    ) -> None:
        """frame: left, top, width and height of the frame."""
        self.picture = picture
        self.left, self.top, self.width, self.height = frame
        self.right, self.bottom = self.left + self.width, self.top + self.height
        self.x_scale = math.log10 if log_x else float
        self.y_scale = math.log10 if log_y else float
        self.x_range, self.y_range = x_range, y_range
        self.clip = f"frame{len(picture.parts)}"
        self.ends: list[tuple[float, str, str]] = []
        inside = svg.rect(self.left - 3, self.top, self.width + 6, self.height)
        picture.parts.append(svg.element("clipPath", inside, id=self.clip))

    def across(self, x: float) -> float:
        low, high = map(self.x_scale, self.x_range)
        return self.left + (self.x_scale(x) - low) / (high - low) * self.width

    def down(self, y: float) -> float:
        low, high = map(self.y_scale, self.y_range)
        return self.bottom - (self.y_scale(y) - low) / (high - low) * self.height

    def ticks(self, x: Mapping[float, str], y: Mapping[float, str]) -> None:
        """Labels along both axes, each y with a line across the frame."""
        for value, label in y.items():
            ends = [(self.left, self.down(value)), (self.right, self.down(value))]
            self.picture.line(ends, "rule", width=1)
            self.picture.text(self.left - 8, self.down(value) + 4.5, label, anchor="end")
        for value, label in x.items():
            self.picture.text(self.across(value), self.bottom + 19, label, anchor="middle")

    def titles(self, title: str, x: str, y: str = "") -> None:
        self.picture.text(self.left, self.top - 14, title, "ink", size=15, bold=True)
        middle = self.left + self.width / 2
        self.picture.text(middle, self.bottom + 40, x, anchor="middle")
        middle = self.top + self.height / 2
        self.picture.text(self.left - 46, middle, y, anchor="middle", turned=True)

    def curve(self, x: Sequence[float], y: Sequence[float], colour: str, name: str = "") -> None:
        """A curve with its name in the margin, or where it leaves the frame for good."""
        points = [(self.across(u), self.down(v)) for u, v in zip(x, y, strict=True)]
        self.picture.line(points, colour, clip=self.clip)
        last = points[-1][1]
        if self.top <= last <= self.bottom:
            self.ends.append((last, name, colour))
            return
        leaving = max(u for u, v in points if self.top <= v <= self.bottom)
        height = self.top + 12 if last < self.top else self.bottom - 6
        self.picture.text(leaving + 8, height, name, colour, bold=True)

    def names(self) -> None:
        """The names of the curves in the margin on the right, moved apart where they touch."""
        ends = sorted(self.ends)
        heights = [height for height, _, _ in ends]
        for _ in range(100):
            for i, (upper, lower) in enumerate(pairwise(heights)):
                apart = max(0.0, LABEL_GAP - (lower - upper)) / 2
                heights[i], heights[i + 1] = upper - apart, lower + apart
        for height, (_, name, colour) in zip(heights, ends, strict=True):
            self.picture.text(self.right + 9, height + 4.5, name, colour, bold=True)


def _css(colour: str) -> str:
    return f"var(--{colour})" if colour in COLOURS else colour
