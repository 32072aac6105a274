"""Boxes, lines and texts as SVG, readable in light, in the dark, on a phone and on paper.

Lines and texts of class "forward" and "backward" take the two colours of the page; the colours
written beside the class are what a PDF shows. Arrowheads are paths of their own, so that the
drawing needs no ids and several of them can stand on one page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Literal, NamedTuple, TypeAlias

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
COLOURS: Final[dict[Kind, str]] = {"forward": "#17568f", "backward": "#a3301c"}

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
    anchor: Literal["start", "end"]
    label: Label


Shape: TypeAlias = Box | FrameBox | Polyline | Plus | Dot | Words
PLUS_RADIUS: Final = _RADIUS


def svg(
    shapes: Sequence[Shape], width: float, height: float, *, title: str, description: str
) -> str:
    """The drawing. It shrinks to the page's width, but not to less than it can be read at."""
    body = "\n".join(part for shape in shapes for part in _drawn(shape))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" font-family="{_FONTS}" '
        f'font-size="{TEXT_SIZE:g}" color="#1d1b18" '
        f'style="color:inherit;max-width:100%;min-width:{0.75 * width:.0f}px;height:auto">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>\n{body}\n</svg>"
    )


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


def _drawn(shape: Shape) -> Iterator[str]:
    match shape:
        case Box():
            yield from _box(shape)
        case FrameBox(x, y, width, height, title, times):
            yield (
                f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" '
                'fill="none" stroke="currentColor" stroke-opacity="0.45" stroke-dasharray="2 3"/>'
            )
            yield _text(x + 8, y + 17, "start", title)
            yield _text(x + width - 8, y + 17, "end", times)
        case Polyline():
            yield from _line(shape)
        case Plus(kind, x, y):
            r = _RADIUS
            yield f'<circle cx="{x:g}" cy="{y:g}" r="{r:g}" {_stroke(kind)}/>'
            cross = f"M{x - r / 2:g} {y:g}h{r:g}M{x:g} {y - r / 2:g}v{r:g}"
            yield f'<path d="{cross}" {_stroke(kind)}/>'
        case Dot(kind, x, y):
            yield f'<circle cx="{x:g}" cy="{y:g}" r="1.5" {_stroke(kind, width=3)}/>'
        case Words(kind, x, y, anchor, label):
            yield _text(x, y, anchor, label, kind)


def _stroke(kind: Kind, width: float = 1.5) -> str:
    return f'class="{kind}" stroke="{COLOURS[kind]}" stroke-width="{width:g}" fill="none"'


def _box(box: Box) -> Iterator[str]:
    rounded = box.height / 2 if box.soft else 5
    faint = ' stroke-opacity="0.55"' if box.soft else ""
    yield (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" '
        f'rx="{rounded:g}" fill="currentColor" fill-opacity="{0 if box.soft else 0.05:g}" '
        f'stroke="currentColor" stroke-width="1.2"{faint}/>'
    )
    for label, y in zip(box.lines, baselines(box), strict=True):
        yield _text(box.x + box.width / 2, y, "middle", label)


def _line(line: Polyline) -> Iterator[str]:
    (x, y), *rest = line.corners
    path = f"M{x:g} {y:g}"
    for to_x, to_y in rest:
        if to_y == y and to_x != x:
            for place in sorted(line.over, reverse=to_x < x):
                sign, sweep = (1, 1) if to_x > x else (-1, 0)
                path += f"H{place - sign * HOP:g}a{HOP:g} {HOP:g} 0 0 {sweep} {sign * 2 * HOP:g} 0"
        path += f"L{to_x:g} {to_y:g}"
        x, y = to_x, to_y
    dashed = ' stroke-dasharray="5 3.5"' if line.kind == "backward" else ""
    yield f'<path d="{path}" {_stroke(line.kind)} stroke-linejoin="round"{dashed}/>'
    if line.arrow:
        yield f'<path d="{_head(line.corners[-2], line.corners[-1])}" {_stroke(line.kind)}/>'


def _head(before: tuple[float, float], tip: tuple[float, float]) -> str:
    """Two strokes that meet in the tip."""
    along = (_sign(tip[0] - before[0]) * _HEAD, _sign(tip[1] - before[1]) * _HEAD)
    across = (along[1] * 0.7, along[0] * 0.7)
    one = (tip[0] - along[0] + across[0], tip[1] - along[1] + across[1])
    other = (tip[0] - along[0] - across[0], tip[1] - along[1] - across[1])
    return f"M{one[0]:g} {one[1]:g}L{tip[0]:g} {tip[1]:g}L{other[0]:g} {other[1]:g}"


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


def _text(x: float, y: float, anchor: str, label: Label, kind: Kind | None = None) -> str:
    colour = f'class="{kind}" fill="{COLOURS[kind]}"' if kind else 'fill="currentColor"'
    pieces, risen = "", 0.0
    for text, italic, shift in _pieces(label):
        height = shift * TEXT_SIZE * (0.22 if shift > 0 else 0.38)
        attributes = f' dy="{height - risen:.3g}"' if height != risen else ""
        attributes += f' font-size="{TEXT_SIZE * _SMALL:.3g}"' if shift else ""
        attributes += ' font-style="italic"' if italic else ""
        pieces += f"<tspan{attributes}>{escape(text)}</tspan>" if attributes else escape(text)
        risen = height
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {colour}>{pieces}</text>'
