"""The same boxes, lines and texts as a TikZ picture, which stands in an article or on a slide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from handgrad.documents import svg
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.tex_text import escape
from handgrad.equations.models.drawing import (
    HOP,
    PLUS_RADIUS,
    TEXT_SIZE,
    Box,
    Dot,
    FrameBox,
    Label,
    Plus,
    Polyline,
    Shape,
    Words,
    baselines,
)

#: A pixel of the drawing, in points; y runs down, as in the drawing.
_UNIT: Final = "0.75pt"
_FONT: Final = rf"\fontsize{{{0.75 * TEXT_SIZE:g}pt}}{{{TEXT_SIZE:g}pt}}\selectfont"


def tikz(shapes: Sequence[Shape]) -> str:
    """The drawing, with the colours that it needs; it takes the package tikz and nothing else."""
    colours = "".join(
        rf"\definecolor{{{kind}}}{{HTML}}{{{colour[1:].upper()}}}%" + "\n"
        for kind, colour in svg.COLOURS.items()
    )
    styles = (
        f"x={_UNIT}, y=-{_UNIT}, line width=0.9pt, line join=round, font={_FONT}, "
        "every node/.style={inner sep=0pt, anchor=base}"
    )
    body = "\n".join(f"  {line};" for shape in shapes for line in _drawn(shape))
    return f"{colours}\\begin{{tikzpicture}}[{styles}]\n{body}\n\\end{{tikzpicture}}"


def _drawn(shape: Shape) -> Iterator[str]:
    match shape:
        case Box():
            yield from _box(shape)
        case FrameBox(x, y, width, height, title, times):
            yield (
                rf"\draw[draw=black!45, dotted, rounded corners=6pt] ({x:g},{y:g}) "
                f"rectangle ++({width:g},{height:g})"
            )
            yield rf"\node[anchor=base west] at ({x + 8:g},{y + 17:g}) {{{_text(title)}}}"
            yield rf"\node[anchor=base east] at ({x + width - 8:g},{y + 17:g}) {{{_text(times)}}}"
        case Polyline():
            yield _line(shape)
        case Plus(kind, x, y):
            r = PLUS_RADIUS
            yield rf"\draw[{kind}] ({x:g},{y:g}) circle[radius={r:g}]"
            yield rf"\draw[{kind}] ({x - r / 2:g},{y:g}) -- ++({r:g},0)"
            yield rf"\draw[{kind}] ({x:g},{y - r / 2:g}) -- ++(0,{r:g})"
        case Dot(kind, x, y):
            yield rf"\fill[{kind}] ({x:g},{y:g}) circle[radius=3]"
        case Words(kind, x, y, anchor, label):
            side = "base west" if anchor == "start" else "base east"
            yield rf"\node[{kind}, anchor={side}] at ({x:g},{y:g}) {{{_text(label)}}}"


def _box(box: Box) -> Iterator[str]:
    corners = box.height / 2 if box.soft else 5
    look = "draw=black!55" if box.soft else "draw, fill=black!5"
    yield (
        rf"\draw[{look}, rounded corners={0.75 * corners:g}pt] ({box.x:g},{box.y:g}) "
        f"rectangle ++({box.width:g},{box.height:g})"
    )
    for label, y in zip(box.lines, baselines(box), strict=True):
        yield rf"\node at ({box.x + box.width / 2:g},{y:g}) {{{_text(label)}}}"


def _line(line: Polyline) -> str:
    """Straight pieces; the first horizontal one hops over what it crosses."""
    look: str = line.kind
    look += ", dash pattern=on 3.75pt off 2.6pt" if line.kind == "backward" else ""
    look += ", ->" if line.arrow else ""
    (x, y), *rest = line.corners
    path = f"({x:g},{y:g})"
    for to_x, to_y in rest:
        if to_y == y and to_x != x:
            way, angles = (1, (180, 360)) if to_x > x else (-1, (360, 180))
            for place in sorted(line.over, reverse=way < 0):
                start, end = angles
                path += (
                    f" -- ({place - way * HOP:g},{y:g})"
                    f" arc[start angle={start}, end angle={end}, radius={HOP:g}]"
                )
        path += f" -- ({to_x:g},{to_y:g})"
        x, y = to_x, to_y
    return rf"\draw[{look}] {path}"


def _text(label: Label) -> str:
    return escape(label) if isinstance(label, str) else rf"\({to_latex(label)}\)"
