"""`handgrad notes`: the derivation of an op, printed from the code that runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from handgrad.derivation.notes import FORMATS, format_of, notes
from handgrad.errors import ArgumentError


def command(
    target: Annotated[
        str,
        typer.Argument(
            help="An op, a worked example (ffn, head_split, tiles), module:object or "
            "file.py:object.",
            metavar="TARGET",
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="The file to write; - for stdout. Otherwise TARGET.html here.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(FORMATS),
            help="Otherwise by the file's suffix.",
            show_default=False,
        ),
    ] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="With every value of a small example.")
    ] = False,
    lang: Annotated[str, typer.Option("--lang", metavar="en|ro", help="The language.")] = "en",
    eta: Annotated[
        float, typer.Option("--eta", help="The learning rate of the updates with --numbers.")
    ] = 0.1,
) -> None:
    """Write the notes of an op or of your own pair of functions."""
    if format is not None and format not in FORMATS:
        raise ArgumentError(f"notes: format is {format!r}; allowed: {', '.join(FORMATS)}")
    if out not in (None, "-") and format is None:
        format = format_of(Path(str(out)))
    chosen = format or "html"
    written = notes(target, numbers=numbers, lang=lang, eta=eta)
    if out == "-":
        sys.stdout.buffer.write(written.rendered(chosen))
        return
    file = Path(out or f"{_stem(target)}.{chosen}")
    written.save(file, chosen)
    typer.echo(f"{file}")


def _stem(target: str) -> str:
    """A file's name for a target: `functions_norm` for `functions.py:norm`."""
    return re.sub(r"\W+", "_", target.replace(".py:", ":")).strip("_")
