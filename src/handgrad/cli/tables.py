"""Tables for terminals: cells side by side where there is room, two lines a row where not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer

from handgrad.escaping import cut, listed, one_line

#: Narrower than this, cells would be broken into pieces that nobody reads, unless the last ones
#: alone are broken, into lines of so many letters or more.
_LEAST: Final = 96
_LEAST_LAST: Final = 32
#: The width where the output is no terminal.
_WIDTH: Final = 100


def print_plan(data: Any) -> None:
    """Print what a table's target is, and what becomes of each column."""
    target, plan = getattr(data, "target", ""), getattr(data, "encoding", None)
    if target:
        classes = data.classes
        kind = f"{len(classes)} classes: {listed(classes)}" if classes else "a number"
        typer.echo(one_line(f"target: {cut(target)}, {kind}"))
    if note := getattr(data, "note", ""):
        typer.echo(one_line(note))
    if target and plan is None:
        typer.echo(one_line(f"columns: {listed(data.columns)}, each a number"))
    if plan is not None:
        print_table(
            ("column", "kind", "missing", "how used"),
            [
                (
                    *(one_line(cut(each.name)), each.kind, f"{each.missing or ''}"),
                    one_line(each.shown),
                )
                for each in plan.columns
            ],
        )


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; in a terminal too narrow for it the first two cells of a row above others."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from handgrad.console import Console

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    console = Console(width=width, highlight=False)
    *widest, last = (max(map(len, cells)) for cells in zip(columns, *rows, strict=True))
    if width < min(_LEAST, sum(widest) + min(_LEAST_LAST, last) + 2 * len(columns)):
        for first, second, *others in rows:
            console.print(Text.assemble((first, "bold"), "  ", second))
            named = zip(columns[2:], others, strict=True)
            facts = "; ".join(f"{name}: {fact}" for name, fact in named if fact)
            console.print(Padding(Text(facts), (0, 0, 0, 2)))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column == columns[0], overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
