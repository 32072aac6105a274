"""SVG: elements whose texts are escaped and whose numbers are short, and the style they share.

A drawing stands in a page, in a file of its own, and in a PDF. There it is drawn by its attributes;
in a page the rules of its classes come before them, so that it fits light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final, Literal, NewType, TypeAlias

#: What is written already, beside texts that are not escaped yet.
Markup = NewType("Markup", str)
Attribute: TypeAlias = str | float | None
Point: TypeAlias = tuple[float, float]
Anchor = Literal["start", "middle", "end"]

#: The colours of values and of gradients in the light, where no page says others.
COLOURS: Final = {"forward": "#17568f", "backward": "#a3301c"}
DASHES: Final = "4 4"


def element(tag: str, *inside: Markup, **attributes: Attribute) -> Markup:
    """An element; `_` in the name of an attribute is -, at its end nothing, None leaves it out."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{given}/>")


def _written(value: str | float) -> str:
    return value if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """A coordinate with two digits after its point at most."""
    return f"{round(float(value), 2) + 0.0:.10g}"


def words(said: str) -> Markup:
    """A text as it stands between elements."""
    return Markup(escape(said, quote=False))


def text(
    x: float,
    y: float,
    said: str | Iterable[Markup],
    anchor: Anchor = "start",
    *,
    turned: float = 0,
    **attributes: Attribute,
) -> Markup:
    """A text, or pieces of it, on the line y, turned around its place by so many degrees."""
    turn = f"rotate({number(turned)} {number(x)} {number(y)})" if turned else None
    pieces = [words(said)] if isinstance(said, str) else said
    placed: dict[str, Attribute] = {"x": x, "y": y, "text_anchor": anchor, "transform": turn}
    return element("text", *pieces, **placed, **attributes)


def rect(
    x: float, y: float, width: float, height: float, *inside: Markup, **attributes: Attribute
) -> Markup:
    """A rectangle; what is inside it is its title."""
    return element("rect", *inside, x=x, y=y, width=width, height=height, **attributes)


def circle(x: float, y: float, radius: float, **attributes: Attribute) -> Markup:
    return element("circle", cx=x, cy=y, r=radius, **attributes)


def line(points: Iterable[Point], **attributes: Attribute) -> Markup:
    """Straight pieces from point to point; nothing is filled where no attribute says so."""
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return element("path", **{"d": path, "fill": "none", "stroke": "currentColor"} | attributes)


def drawing(
    width: float, height: float, label: str | None, parts: Iterable[Markup], **attributes: Attribute
) -> Markup:
    """A whole drawing; `label` says what it shows to who cannot see it."""
    return element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
        **attributes,
    )
