"""Attention maps: what was looked at across, what was made with it down."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Final

from handgrad.arrays import Array
from handgrad.documents import svg
from handgrad.training.report.heatmap import BLUE, placed, shades

#: Width of a letter over the size of the font, and what stands between labels and map.
_LETTER, _GAP = 0.62, 6

_SHOWN: Final = {" ": "␣", "\n": "⏎", "\t": "⇥"}


def visible(text: str) -> str:
    """A token that can be seen: ␣ for a space, ◌ under a lone accent, � for what has no shape."""
    return "".join(_letter(letter) for letter in text)


def _letter(letter: str) -> str:
    if letter in _SHOWN:
        return _SHOWN[letter]
    category = unicodedata.category(letter)
    if category[0] in "CZ":
        return "\N{REPLACEMENT CHARACTER}"
    return f"\N{DOTTED CIRCLE}{letter}" if category[0] == "M" else letter


def attention_map(
    weights: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    label: str,
    cell: float = 18,
    font: float = 13,
) -> str:
    """Weights (T, S) on a scale to the largest of them, with the symbols of both sides.

    Columns stand upright where all of them are short, and slanted otherwise.
    """
    tall, wide = weights.shape
    longest = max(map(len, columns))
    slanted = longest * _LETTER * font > cell + 3
    # A single letter may be an m, which is as wide as the font is high.
    left = max(1.0, max(map(len, rows)) * _LETTER) * font + _GAP + 2
    top = font + _GAP + (longest * _LETTER * font * 0.77 if slanted else 0)
    right = left + cell * wide
    parts = []
    anchor: svg.Anchor
    for j, name in enumerate(columns):
        x = left + cell * (j + 0.5)
        if slanted:
            right = max(right, x + len(name) * _LETTER * font * 0.65)
        turned, anchor = (-50.0, "start") if slanted else (0.0, "middle")
        parts.append(svg.text(x, top - _GAP, visible(name), anchor, turned=turned))
    for i, name in enumerate(rows):
        y = top + cell * (i + 0.5) + font * 0.35
        parts.append(svg.text(left - _GAP, y, visible(name), "end"))
    parts.append(placed(_blue(weights), left, top, cell * wide, cell * tall))
    sized = svg.element("g", *parts, style=f"--font:{font:g}px")
    return svg.drawing(right + 2, top + cell * tall + 2, label, [sized], class_="map")


def _blue(weights: Array) -> str:
    """Shades of weights, the strongest of them full."""
    return shades(weights / (weights.max() or 1.0), above=BLUE)


def small_map(weights: Array, name: str, cell: float) -> str:
    """The same without symbols, with its name beneath."""
    tall, wide = weights.shape
    return (
        f'<figure class="small"><img class="shades" src="{_blue(weights)}" '
        f'alt="{escape(name)}" style="width:{cell * wide:.0f}px;height:{cell * tall:.0f}px">'
        f"<figcaption>{escape(name)}</figcaption></figure>"
    )
