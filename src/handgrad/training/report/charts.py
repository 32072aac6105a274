"""Line charts as SVG text; colours come from the page's style sheet."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from handgrad.arrays import Array
from handgrad.documents import skeleton

PLOT_WIDTH, HEIGHT = 296, 272
LEFT, TOP, BOTTOM = 52, 14, 38
DASHED = ' stroke-dasharray="4 4"'
LABEL_GAP, LABEL_LENGTH, LETTER = 15.0, 24, 8.4
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


def plain_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round values (1, 2 or 5 times a power of ten apart) inside [low, high]."""
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten inside [low, high], with 2 and 5 times them where there are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5)):
        ticks = [f * 10.0**d for d in decades for f in factors]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= 4:
            break
    return inside[:: max(1, math.ceil(len(inside) / 7))]


def number(value: float) -> str:
    """A short form for an axis: 0.05, 2, 1e-5."""
    return f"{value:.0e}".replace("e-0", "e-") if 0 < abs(value) < 1e-3 else f"{value:g}"


def figure(caption: str, drawing: str) -> str:
    """A drawing in its frame; nothing where there is none."""
    return f"<figure><figcaption>{caption}</figcaption>{drawing}</figure>" if drawing else ""


def standalone(drawing: str) -> str:
    """A drawing as an SVG file of its own, with the colours of pages."""
    head, _, rest = drawing.partition(">")
    named = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    named = named.replace('class="', 'class="handgrad report ', 1)
    style = skeleton.styles("colours", "report")
    return f"{named}><style>{escape(style, quote=False)}</style>{rest}"


def line_chart(
    series: Sequence[Series],
    *,
    label: str,
    x_label: str,
    y_format: Callable[[float], str] = number,
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
        ticks = log_ticks(low, high)
    else:
        room = (high - low or abs(high) or 1.0) * 0.05
        low = low - room if y_low is None else low
        high = high + room if y_high is None else high
        ticks = plain_ticks(low, high)
    scale = math.log if log else float
    longest = min(max(len(s.name) for s in series), LABEL_LENGTH)
    right = LEFT + PLOT_WIDTH
    width = right + max(92, round(LEADER + 6 + LETTER * longest))

    scale_x = math.log if log_x else float

    def across(x: float) -> float:
        share = (scale_x(x) - scale_x(x_min)) / (scale_x(x_max) - scale_x(x_min))
        return LEFT + share * PLOT_WIDTH

    def down(y: float) -> float:
        share = (scale(y) - scale(low)) / (scale(high) - scale(low))
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    frame = "frame-" + "-".join(label.lower().split())
    parts = [
        f'<svg class="chart" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">',
        f'<clipPath id="{frame}"><rect x="{LEFT - 3}" y="{TOP - 3}" '
        f'width="{PLOT_WIDTH + 6}" height="{HEIGHT - TOP - BOTTOM + 6}"/></clipPath>',
    ]
    for tick in ticks:
        y = down(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" class="end">{y_format(tick)}</text>')
    if log_x:
        named = [(tick, number(tick)) for tick in log_ticks(x_min, x_max)]
    else:
        named = [(tick, f"{tick:,.0f}") for tick in _x_ticks(x_min, x_max)]
    labels = [(across(tick), HEIGHT - BOTTOM + 17, text) for tick, text in named]
    labels.append(((LEFT + right) / 2, HEIGHT - 5, escape(x_label)))
    parts += [f'<text x="{x:.1f}" y="{y}" class="mid">{text}</text>' for x, y, text in labels]
    if marked is not None:
        x = across(marked)
        parts.append(
            f'<path class="mark" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
            f'<text x="{x + 6:.1f}" y="{TOP + 12}" class="name">{marked:.2g}</text>'
        )
    ends: list[tuple[float, float, Series]] = []
    for s, line in zip(series, points, strict=True):
        if not line:
            continue
        dash = DASHED if s.dashed else ""
        path = "L".join(f"{across(x):.1f} {down(y):.1f}" for x, y in line)
        parts.append(
            f'<g clip-path="url(#{frame})" style="color:{s.style}">'
            f'<path class="line" d="M{path}"{dash}/>'
        )
        if len(line) <= 12 and not s.dashed:
            parts += [f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="2.6"/>' for x, y in line]
        parts.append("</g>")
        last, height = across(line[-1][0]), down(line[-1][1])
        ends.append((min(max(height, TOP), HEIGHT - BOTTOM), last, s))
    ends.sort(key=lambda end: end[0])
    for y, (end, last, s) in zip(spread([end for end, *_ in ends]), ends, strict=True):
        dash = DASHED if s.dashed else ""
        parts.append(
            f'<path class="leader" style="color:{s.style}" '
            f'd="M{last + 3:.1f} {end:.1f}H{right + 3}L{right + LEADER - 4} {y:.1f}"{dash}/>'
            f'<text x="{right + LEADER}" y="{y + 4:.1f}" class="name" style="fill:{s.style}">'
            f"{escape(_shortened(s.name))}</text>"
        )
    parts.append("</svg>")
    return "".join(parts)


def spread(heights: Sequence[float]) -> list[float]:
    """Heights, lowest first, moved apart so that labels there do not overlap, inside the chart."""
    placed: list[float] = []
    for y in heights:
        placed.append(max(y, placed[-1] + LABEL_GAP) if placed else y)
    limit = HEIGHT - BOTTOM + 3.0
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], limit)
        limit = placed[i] - LABEL_GAP
    return placed


def _shortened(name: str) -> str:
    """The number in a long name and its end, which tell layers apart: blocks.1…inner.linear2."""
    if len(name) <= LABEL_LENGTH:
        return name
    numbered = re.findall(r"[^.]+\.\d+(?=\.)", name)
    start = numbered[-1][-LABEL_LENGTH // 2 :] if numbered else ""
    return start + "…" + name[len(start) + 1 - LABEL_LENGTH :]


def _x_ticks(low: float, high: float) -> list[float]:
    """Whole numbers only: epochs and steps have no halves."""
    inside = [tick for tick in plain_ticks(low, high) if tick == round(tick)]
    return inside or [round((low + high) / 2)]
