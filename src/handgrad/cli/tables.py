"""Tables for terminals: cells side by side where there is room, two lines a row where not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any, Final

from handgrad.escaping import cut, one_line

#: Narrower than this, cells would be broken into pieces that nobody reads.
_LEAST: Final = 96
#: The width where the output is no terminal.
_WIDTH: Final = 100


def print_plan(data: Any) -> None:
    """Print what becomes of each column of a table that holds more than numbers."""
    plan = getattr(data, "encoding", None)
    if plan is not None:
        print_table(
            ("column", "read as", "missing", "given to the network as"),
            [
                (one_line(cut(each.name)), each.kind, str(each.missing or ""), one_line(each.use))
                for each in plan.columns
            ],
        )


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; in a narrow terminal the first two cells of a row above all others."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from handgrad.console import Console

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    console = Console(width=width, highlight=False)
    if width < _LEAST:
        for first, second, *others in rows:
            console.print(Text.assemble((first, "bold"), "  ", second))
            named = zip(columns[2:], others, strict=True)
            facts = "; ".join(f"{name}: {fact}" for name, fact in named)
            console.print(Padding(Text(facts), (0, 0, 0, 2)))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column == columns[0], overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
