"""The file around every page: its head, its style and its font, with nothing to fetch."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

#: The font of formulas; `packaging/math_font.py` writes it.
FONT: Final = "math.woff2"
#: The styles of every page.
_EVERYWHERE: Final = ("colours", "style")


def page(
    title: str, body: str, *, lang: str = "en", name: str = "", style: str = "", scripts: str = ""
) -> str:
    """A whole file around a body, readable on a phone, in the dark and on paper.

    `name` is a class of the body, which `style` has rules for. The font is in a page with formulas.
    """
    classes = f"handgrad {name}".rstrip()
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(lang)}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="generator" content="handgrad">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_font(body)}{styles(*_EVERYWHERE)}{style}"
        f'</style>\n</head>\n<body class="handgrad-page">\n<main class="{classes}">\n{body}'
        f"</main>\n{scripts}</body>\n</html>\n"
    )


def fragment(body: str, lang: str) -> str:
    """A body for a notebook's cell: an element with its style, in the cell's colours."""
    return (
        f"<style>\n{_font(body)}{styles(*_EVERYWHERE)}</style>\n"
        f'<div class="handgrad" lang="{escape(lang)}">\n{body}</div>\n'
    )


def sheet() -> str:
    """The style of fragments for a site that has them on many pages, and colours of its own."""
    return _font_face() + styles("style")


@cache
def styles(*names: str) -> str:
    """The rules of these files: "report" for figures and tables of a run or a check."""
    folder = files("handgrad.documents")
    return "".join(folder.joinpath(f"{name}.css").read_text("utf-8") for name in names)


def _font(body: str) -> str:
    return _font_face() if "<math" in body else ""


@cache
def _font_face() -> str:
    data = files("handgrad.documents").joinpath(FONT).read_bytes()
    encoded = b64encode(data).decode("ascii")
    return (
        '@font-face {\n  font-family: "handgrad math";\n'
        f'  src: url(data:font/woff2;base64,{encoded}) format("woff2");\n}}\n'
    )
