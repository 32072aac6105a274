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
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Final

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

Point = tuple[float, float]


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
        self.parts: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: str = "muted",
        *,
        size: float = 13,
        anchor: str = "start",
        bold: bool = False,
        turned: bool = False,
    ) -> None:
        """Text on the line y; anchor: start, middle or end; turned: from bottom to top."""
        weight = ' font-weight="600"' if bold else ""
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"'
            f'{weight}{turn} fill="{_css(colour)}">{escape(text)}</text>'
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
        paint = f'fill="{_css(colour)}"'
        if opacity < 1.0:
            paint += f' fill-opacity="{opacity:.2f}"'
        if outline:
            paint = f'fill="none" stroke="{_css(colour)}" stroke-width="2.5"'
        frame = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.parts.append(f"<rect {frame} {paint}/>")

    def circle(self, x: float, y: float, radius: float, colour: str, edge: str) -> None:
        self.parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{_css(colour)}" '
            f'stroke="{_css(edge)}" stroke-width="1.5"/>'
        )

    def line(
        self,
        points: Sequence[Point],
        colour: str,
        *,
        width: float = 2,
        dashed: bool = False,
        clip: str = "",
    ) -> None:
        dash = ' stroke-dasharray="4 4"' if dashed else ""
        inside = f' clip-path="url(#{clip})"' if clip else ""
        self.parts.append(
            f'<path d="M{_path(points)}" fill="none" stroke="{_css(colour)}" '
            f'stroke-width="{width:g}" stroke-linejoin="round"{dash}{inside}/>'
        )

    def area(self, points: Sequence[Point], colour: str) -> None:
        self.parts.append(f'<path d="M{_path(points)}Z" fill="{_css(colour)}"/>')

    def svg(self) -> str:
        """The whole file."""
        light, dark = ("".join(f"--{name}:{c[i]};" for name, c in COLOURS.items()) for i in (0, 1))
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" '
            f'aria-label="{escape(self.label)}" font-family="{FONT}">',
            f"<style>:root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
            "rect:not([rx]){shape-rendering:crispEdges}</style>",
            f'<rect width="{self.width}" height="{self.height}" rx="10" fill="{_css("paper")}"/>',
        )
        return "\n".join((*head, *self.parts, "</svg>\n"))

    def save(self, path: Path) -> None:
        path.write_text(self.svg(), "utf-8")


class Axes:
    """A frame for curves: ranges of x and y, each linear or logarithmic, and where they lie."""

    def __init__(
        self,
        picture: Picture,
        frame: tuple[float, float, float, float],
        x_range: Point,
        y_range: Point,
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
        picture.parts.append(
            f'<clipPath id="{self.clip}"><rect x="{self.left - 3:.1f}" y="{self.top:.1f}" '
            f'width="{self.width + 6:.1f}" height="{self.height:.1f}"/></clipPath>'
        )

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


def _path(points: Sequence[Point]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
