"""Pieces that every page is put together from."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files


def page(title: str, heading: str, lead: str, sections: Sequence[str]) -> str:
    """A whole page that needs no other file; all but `title` and `heading` is HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} · handgrad</title>\n<style>\n{style()}</style>\n</head>\n"
        f"<body>\n<main>\n<header><h1>{escape(heading)}</h1><p>{lead}</p></header>\n"
        + "\n".join(section for section in sections if section)
        + "\n</main>\n</body>\n</html>\n"
    )


def style() -> str:
    """The style sheet of pages, which the colours of drawings are from."""
    return files(__package__).joinpath("style.css").read_text("utf-8")


def section(heading: str, note: str, body: str) -> str:
    """A section; nothing where it has no body."""
    if not body:
        return ""
    said = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{heading}</h2>{said}{body}</section>"


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    foot: Sequence[str] = (),
    kind: str = "numbers",
) -> str:
    """A table whose columns behind the first are numbers, or texts for another `kind`."""

    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    below = f"<tfoot>{row(foot, 'td')}</tfoot>" if foot else ""
    return (
        f'<div class="scroll"><table class="{kind}"><thead>{row(heads, "th")}</thead>'
        f"<tbody>{body}</tbody>{below}</table></div>"
    )


def percent(value: float, digits: int = 2) -> str:
    """0.9876 as 98.76 %."""
    return f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%"
