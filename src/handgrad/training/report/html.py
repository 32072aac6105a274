"""Pieces that every page is put together from."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from handgrad.documents import skeleton


def page(title: str, heading: str, lead: str, sections: Sequence[str]) -> str:
    """A whole page that needs no other file; all but `title` and `heading` is HTML."""
    shown = "\n".join(section for section in sections if section)
    header = f"<header><h1>{escape(heading)}</h1><p>{lead}</p></header>"
    style = skeleton.styles("report")
    return skeleton.page(f"{title} · handgrad", f"{header}\n{shown}\n", name="report", style=style)


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
