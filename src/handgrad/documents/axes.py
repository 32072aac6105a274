"""Axes of a chart: scales from values to pixels, round numbers along them, and their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from handgrad.documents import svg

NAME_GAP: Final = 15.0


def plain_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round values (1, 2 or 5 times a power of ten apart) inside [low, high]."""
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def whole_ticks(low: float, high: float) -> list[float]:
    """Whole numbers only: epochs and steps have no halves."""
    inside = [tick for tick in plain_ticks(low, high) if tick == round(tick)]
    return inside or [round((low + high) / 2)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten inside [low, high], with 2 and 5 times them where there are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5)):
        ticks = [f * 10.0**d for d in decades for f in factors]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= 4:
            break
    return inside[:: max(1, math.ceil(len(inside) / 7))]


def short(value: float) -> str:
    """A short form for an axis: 0.05, 2, 1e-5."""
    return f"{value:.0e}".replace("e-0", "e-") if 0 < abs(value) < 1e-3 else f"{value:g}"


def whole(value: float) -> str:
    """1,200 for an axis of whole numbers."""
    return f"{value:,.0f}"


def spread(heights: Sequence[float], lowest: float) -> list[float]:
    """Heights, from the top down, moved apart so that names there do not overlap."""
    placed: list[float] = []
    for y in heights:
        placed.append(max(y, placed[-1] + NAME_GAP) if placed else y)
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], lowest)
        lowest = placed[i] - NAME_GAP
    return placed


class AxisScale(NamedTuple):
    """Values from `low` to `high` over the pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        form = math.log if self.log else float
        share = (form(value) - form(self.low)) / (form(self.high) - form(self.low))
        return self.start + share * (self.end - self.start)


class Note(NamedTuple):
    """A text of an axis and the place where it stands."""

    x: float
    y: float
    said: str
    anchor: svg.Anchor
    turned: float = 0


@dataclass(frozen=True)
class Axes:
    """Values to the right and values up, with round numbers along both."""

    across: AxisScale
    down: AxisScale
    x_label: str
    y_label: str = ""
    x_format: Callable[[float], str] = short
    y_format: Callable[[float], str] = short
    ticks: Callable[[float, float], list[float]] = plain_ticks
    x_ticks: Callable[[float, float], list[float]] | None = None

    def place(self, x: float, y: float) -> svg.Point:
        return self.across(x), self.down(y)

    def grid(self) -> list[list[svg.Point]]:
        """A line across at each number up."""
        return [[(x, self.down(tick)) for x in self.across[2:4]] for tick in self._heights()]

    def notes(self) -> Iterator[Note]:
        """The numbers along both axes, and their names."""
        (left, right), (bottom, top) = self.across[2:4], self.down[2:4]
        for tick in self._heights():
            yield Note(left - 8, self.down(tick) + 4, self.y_format(tick), "end")
        ticks = log_ticks if self.across.log else self.x_ticks or self.ticks
        for tick in ticks(*self.across[:2]):
            yield Note(self.across(tick), bottom + 17, self.x_format(tick), "middle")
        yield Note((left + right) / 2, bottom + 34, self.x_label, "middle")
        if self.y_label:
            yield Note(14, (top + bottom) / 2, self.y_label, "middle", -90)

    def _heights(self) -> list[float]:
        return (log_ticks if self.down.log else self.ticks)(*self.down[:2])

    def drawn(self) -> Iterator[svg.Markup]:
        for ends in self.grid():
            yield svg.line(ends, class_="grid", stroke_opacity=0.2)
        for x, y, said, anchor, turned in self.notes():
            yield svg.text(x, y, said, anchor, turned=turned)
