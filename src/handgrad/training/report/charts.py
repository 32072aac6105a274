"""Line charts as SVG text; colours come from the page's style sheet."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from handgrad.arrays import Array
from handgrad.documents import skeleton, svg
from handgrad.documents.axes import Axes, AxisScale, short, spread, whole, whole_ticks

PLOT_WIDTH, HEIGHT = 296, 272
LEFT, TOP, BOTTOM = 52, 14, 38
LABEL_LENGTH, LETTER = 24, 8.4
#: From the frame to the labels, with a line to each from the end of what it names.
LEADER = 22


@dataclass(frozen=True)
class Series:
    """A line: its name is written at its right end; `style` is its colour in CSS."""

    name: str
    x: Sequence[float] | Array
    y: Sequence[float] | Array
    style: str
    dashed: bool = False


def figure(caption: str, drawing: str) -> str:
    """A drawing in its frame; nothing where there is none."""
    return f"<figure><figcaption>{caption}</figcaption>{drawing}</figure>" if drawing else ""


def standalone(drawing: str) -> str:
    """A drawing as an SVG file of its own, with the colours of pages."""
    head, _, rest = drawing.replace('class="', 'class="handgrad report ', 1).partition(">")
    style = svg.element("style", svg.words(skeleton.styles("colours", "report")))
    return f"{head}>{style}{rest}"


def line_chart(
    series: Sequence[Series],
    *,
    label: str,
    x_label: str,
    y_format: Callable[[float], str] = short,
    log: bool = False,
    y_low: float | None = None,
    y_high: float | None = None,
    log_x: bool = False,
    marked: float | None = None,
) -> str:
    """A chart of a few lines, each named at its end; `label` says to a reader what it shows.

    Points below `y_low` are cut off at the frame; on a logarithmic axis values of 0 are left out.
    A line upright at `marked` has that number at its top.
    """
    points = [
        [(x, y) for x, y in zip(s.x, s.y, strict=True) if math.isfinite(y) and (y > 0 or not log)]
        for s in series
    ]
    xs = [x for line in points for x, _ in line]
    ys = [y for line in points for _, y in line]
    if not xs:
        return ""
    x_min, x_max = min(xs), max(xs)
    if x_min == x_max:
        x_min, x_max = x_min - 0.5, x_max + 0.5
    low = min(ys) if y_low is None else y_low
    high = max(ys) if y_high is None else y_high
    if log:
        low, high = low / 1.15, high * 1.15
    else:
        room = (high - low or abs(high) or 1.0) * 0.05
        low = low - room if y_low is None else low
        high = high + room if y_high is None else high
    longest = min(max(len(s.name) for s in series), LABEL_LENGTH)
    right, bottom = LEFT + PLOT_WIDTH, HEIGHT - BOTTOM
    axes = Axes(
        AxisScale(x_min, x_max, LEFT, right, log_x),
        AxisScale(low, high, bottom, TOP, log),
        x_label,
        x_format=short if log_x else whole,
        y_format=y_format,
        x_ticks=whole_ticks,
    )
    frame = "frame-" + "-".join(label.lower().split())
    box = svg.rect(LEFT - 3, TOP - 3, PLOT_WIDTH + 6, bottom - TOP + 6)
    parts = [svg.element("clipPath", box, id=frame), *axes.drawn()]
    if marked is not None:
        x = axes.across(marked)
        parts.append(svg.line([(x, TOP), (x, bottom)], class_="mark"))
        parts.append(svg.text(x + 6, TOP + 12, f"{marked:.2g}", class_="name"))
    ends: list[tuple[float, float, Series]] = []
    for s, line in zip(series, points, strict=True):
        if not line:
            continue
        placed = [axes.place(*point) for point in line]
        dashes = svg.DASHES if s.dashed else None
        dots = placed if len(line) <= 12 and not s.dashed else []
        drawn = [
            svg.line(placed, class_="line", stroke_dasharray=dashes),
            *[svg.circle(*point, 2.6) for point in dots],
        ]
        style = f"color:{s.style}"
        parts.append(
            svg.element("g", *drawn, clip_path=f"url(#{frame})", style=style, fill="currentColor")
        )
        last, height = placed[-1]
        ends.append((min(max(height, TOP), bottom), last, s))
    ends.sort(key=lambda end: end[0])
    for y, (end, last, s) in zip(spread([end for end, *_ in ends], bottom + 3), ends, strict=True):
        corners = [(last + 3, end), (right + 3, end), (right + LEADER - 4, y)]
        dashes = svg.DASHES if s.dashed else None
        style = f"color:{s.style}"
        parts.append(svg.line(corners, class_="leader", style=style, stroke_dasharray=dashes))
        style, name = f"fill:{s.style}", _shortened(s.name)
        parts.append(svg.text(right + LEADER, y + 4, name, class_="name", style=style))
    width = right + max(92, round(LEADER + 6 + LETTER * longest))
    return svg.drawing(width, HEIGHT, label, parts, class_="chart")


def _shortened(name: str) -> str:
    """The number in a long name and its end, which tell layers apart: blocks.1…inner.linear2."""
    if len(name) <= LABEL_LENGTH:
        return name
    numbered = re.findall(r"[^.]+\.\d+(?=\.)", name)
    start = numbered[-1][-LABEL_LENGTH // 2 :] if numbered else ""
    return start + "…" + name[len(start) + 1 - LABEL_LENGTH :]
