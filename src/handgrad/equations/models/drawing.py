"""Boxes, lines and texts as SVG, readable in light, in the dark, on a phone and on paper.

Lines and texts of class "forward" and "backward" take the two colours of the page; the colours
written beside the class are what a PDF shows. Arrowheads are paths of their own, so that the
drawing needs no ids and several of them can stand on one page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from handgrad.documents import svg
from handgrad.documents.formulas.formula import (
    LETTERS,
    Formula,
    FormulaRow,
    Number,
    Script,
    Sign,
    Symbol,
    Text,
)

Kind = Literal["forward", "backward"]

#: Sizes in pixels, of a phone of 360 and of A4 alike.
TEXT_SIZE: Final = 13.0
_SMALL: Final = 0.72
_RADIUS: Final = 8.0
_HEAD: Final = 5.0
#: The radius of a hop over a line that is crossed.
HOP: Final = 5.0
_FONTS: Final = (
    "Charter, 'STIX Two Text', Georgia, 'New Computer Modern', 'Noto Serif', serif, 'handgrad math'"
)

#: What a label says: words, or a formula in one line.
Label: TypeAlias = str | Formula


@dataclass(frozen=True)
class Box:
    """A rectangle around lines of text; `soft` for what is no layer."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[Label, ...]
    soft: bool = False


@dataclass(frozen=True)
class FrameBox:
    """A rectangle around what belongs together, its title at the left and `times` at the right."""

    x: float
    y: float
    width: float
    height: float
    title: Label
    times: str = ""


@dataclass(frozen=True)
class Polyline:
    """Straight pieces from corner to corner; it hops over the places in `over`, all on its first
    horizontal piece, and ends in an arrowhead or not."""

    kind: Kind
    corners: tuple[tuple[float, float], ...]
    arrow: bool = True
    over: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plus:
    """⊕ where values or gradients are added."""

    kind: Kind
    x: float
    y: float


@dataclass(frozen=True)
class Dot:
    """Where a value or a gradient goes two ways."""

    kind: Kind
    x: float
    y: float


@dataclass(frozen=True)
class Words:
    """A label beside a line, its baseline at y."""

    kind: Kind
    x: float
    y: float
    anchor: svg.Anchor
    label: Label


Shape: TypeAlias = Box | FrameBox | Polyline | Plus | Dot | Words
PLUS_RADIUS: Final = _RADIUS


def drawn(
    shapes: Sequence[Shape], width: float, height: float, *, title: str, description: str
) -> str:
    """The drawing. It shrinks to the page's width, but not to less than it can be read at."""
    parts = [
        svg.element("title", svg.words(title)),
        svg.element("desc", svg.words(description)),
        *[part for shape in shapes for part in _drawn(shape)],
    ]
    least = svg.number(0.75 * width)
    look: dict[str, svg.Attribute] = {
        "font_family": _FONTS,
        "font_size": TEXT_SIZE,
        "color": "#1d1b18",
        "style": f"color:inherit;max-width:100%;min-width:{least}px;height:auto",
    }
    return svg.drawing(width, height, None, parts, **look)


def text_width(label: Label, size: float = TEXT_SIZE) -> float:
    """About how wide a label is."""
    return sum(
        len(piece.text) * size * 0.56 * (_SMALL if piece.shift else 1.0) for piece in _pieces(label)
    )


def spoken(label: Label) -> str:
    """The words of a label, without its form."""
    return "".join(piece.text for piece in _pieces(label))


def baselines(box: Box) -> Iterator[float]:
    """The height of each line of text in a box, around its middle."""
    step = 16.0
    first = box.y + box.height / 2 - step * (len(box.lines) - 1) / 2 + TEXT_SIZE * 0.35
    return (first + i * step for i in range(len(box.lines)))


def _drawn(shape: Shape) -> Iterator[svg.Markup]:
    match shape:
        case Box():
            yield from _box(shape)
        case FrameBox(x, y, width, height, title, times):
            dots: dict[str, svg.Attribute] = {"stroke_opacity": 0.45, "stroke_dasharray": "2 3"}
            yield svg.rect(x, y, width, height, rx=8, fill="none", stroke="currentColor", **dots)
            yield _text(x + 8, y + 17, "start", title)
            yield _text(x + width - 8, y + 17, "end", times)
        case Polyline():
            yield from _line(shape)
        case Plus(kind, x, y):
            r = _RADIUS
            yield svg.circle(x, y, r, **_stroke(kind))
            for ends in ([(x - r / 2, y), (x + r / 2, y)], [(x, y - r / 2), (x, y + r / 2)]):
                yield svg.line(ends, **_stroke(kind))
        case Dot(kind, x, y):
            yield svg.circle(x, y, 1.5, **_stroke(kind, width=3))
        case Words(kind, x, y, anchor, label):
            yield _text(x, y, anchor, label, kind)


def _stroke(kind: Kind, width: float = 1.5) -> dict[str, svg.Attribute]:
    return {"class_": kind, "stroke": svg.COLOURS[kind], "stroke_width": width, "fill": "none"}


def _box(box: Box) -> Iterator[svg.Markup]:
    yield svg.rect(
        box.x,
        box.y,
        box.width,
        box.height,
        rx=box.height / 2 if box.soft else 5,
        fill="currentColor",
        fill_opacity=0 if box.soft else 0.05,
        stroke="currentColor",
        stroke_width=1.2,
        stroke_opacity=0.55 if box.soft else None,
    )
    for label, y in zip(box.lines, baselines(box), strict=True):
        yield _text(box.x + box.width / 2, y, "middle", label)


def _line(line: Polyline) -> Iterator[svg.Markup]:
    (x, y), *rest = line.corners
    path = f"M{svg.number(x)} {svg.number(y)}"
    for to_x, to_y in rest:
        if to_y == y and to_x != x:
            for place in sorted(line.over, reverse=to_x < x):
                sign, sweep = (1, 1) if to_x > x else (-1, 0)
                start, hop = svg.number(place - sign * HOP), svg.number(HOP)
                path += f"H{start}a{hop} {hop} 0 0 {sweep} {svg.number(sign * 2 * HOP)} 0"
        path += f"L{svg.number(to_x)} {svg.number(to_y)}"
        x, y = to_x, to_y
    dashes = "5 3.5" if line.kind == "backward" else None
    look = {"stroke_linejoin": "round", "stroke_dasharray": dashes}
    yield svg.element("path", d=path, **_stroke(line.kind), **look)
    if line.arrow:
        yield svg.line(_head(line.corners[-2], line.corners[-1]), **_stroke(line.kind))


def _head(before: svg.Point, tip: svg.Point) -> list[svg.Point]:
    """Two strokes that meet in the tip."""
    along = (_sign(tip[0] - before[0]) * _HEAD, _sign(tip[1] - before[1]) * _HEAD)
    across = (along[1] * 0.7, along[0] * 0.7)
    one = (tip[0] - along[0] + across[0], tip[1] - along[1] + across[1])
    other = (tip[0] - along[0] - across[0], tip[1] - along[1] - across[1])
    return [one, tip, other]


def _sign(value: float) -> float:
    return (value > 0) - (value < 0)


class _Piece(NamedTuple):
    """A run of text; `shift` is 1 for a subscript, −1 for a superscript."""

    text: str
    italic: bool = False
    shift: int = 0


def _pieces(label: Label, shift: int = 0) -> Iterator[_Piece]:
    match label:
        case str():
            yield _Piece(label, shift=shift)
        case Symbol(name):
            latin = len(name) == 1
            yield _Piece(name if latin else LETTERS[name], latin or name.islower(), shift)
        case Number(digits) | Text(digits):
            yield _Piece(digits, shift=shift)
        case Sign(char):
            yield _Piece({",": ", ", "⋯": "…"}.get(char, char), shift=shift)
        case FormulaRow(parts):
            for part in parts:
                yield from _pieces(part, shift)
        case Script(base, sub, sup):
            yield from _pieces(base, shift)
            if sub is not None:
                yield from _pieces(sub, 1)
            if sup is not None:
                yield from _pieces(sup, -1)
        case _:
            body = getattr(label, "body", None)
            if body is not None:  # brackets, or a mark that a drawing can do without
                yield _Piece("(", shift=shift)
                yield from _pieces(body, shift)
                yield _Piece(")", shift=shift)


def _text(
    x: float, y: float, anchor: svg.Anchor, label: Label, kind: Kind | None = None
) -> svg.Markup:
    pieces, risen = [], 0.0
    for text, italic, shift in _pieces(label):
        height = shift * TEXT_SIZE * (0.22 if shift > 0 else 0.38)
        look: dict[str, svg.Attribute] = {
            "dy": height - risen if height != risen else None,
            "font_size": TEXT_SIZE * _SMALL if shift else None,
            "font_style": "italic" if italic else None,
        }
        plain = all(value is None for value in look.values())
        words = svg.words(text)
        pieces.append(words if plain else svg.element("tspan", words, **look))
        risen = height
    fill = svg.COLOURS[kind] if kind else "currentColor"
    return svg.text(x, y, pieces, anchor, class_=kind, fill=fill)
