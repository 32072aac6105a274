"""Options that several commands have, and what a shell completes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

import handgrad as hg

Quiet: TypeAlias = Annotated[
    bool, typer.Option("-q", "--quiet", help="Print nothing but warnings and errors.")
]
Drop: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="NAME",
        help="A column of a table to leave out; may be repeated.",
        show_default=False,
    ),
]
Kinds: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="NAME=KIND",
        help="What a column of a table is read as: number, category or date; may be repeated.",
        show_default=False,
    ),
]


def ops(incomplete: str) -> list[str]:
    """The ops whose names begin so."""
    return [name for name in hg.ops.OPS if name.startswith(incomplete)]


def known_recipes(incomplete: str) -> list[str]:
    """The recipes whose names begin so, by their files, because reading them takes longer."""
    files = (Path(hg.__file__).parent / "recipes").glob(f"{incomplete}*.toml")
    return sorted(file.stem for file in files)


def targets(incomplete: str) -> list[str]:
    """The ops and recipes whose names begin so."""
    return [*ops(incomplete), *known_recipes(incomplete)]
