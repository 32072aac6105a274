"""`handgrad translate`: a trained run makes one text from another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from handgrad.errors import ArgumentError, DataError

EXAMPLES: Final = """
handgrad translate runs/dates "3 May 1999"
handgrad translate runs/dates --file dates.txt --beam 4
"""


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Texts; without any, the lines of stdin.", metavar="[TEXT...]"),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="A file, one text in each line.", show_default=False),
    ] = None,
    beam: Annotated[int, typer.Option("--beam", help="Hypotheses of a beam search.")] = 1,
    length_penalty: Annotated[
        float, typer.Option("--length-penalty", help="Above 0 prefers longer texts, with --beam.")
    ] = 0.0,
    longest: Annotated[int, typer.Option("--longest", help="Tokens at most.")] = 200,
) -> None:
    """Print what the model makes of each text, one in a line."""
    from handgrad.data.files import read_utf8
    from handgrad.recipes.runs import check_task, read_recipe
    from handgrad.training.loading import load

    recipe = read_recipe(folder)
    check_task(folder, recipe, "pairs", "allowed: handgrad predict or generate")
    if texts and file is not None:
        raise ArgumentError("translate: texts and --file are given; allowed: one of them")
    if file is not None:
        texts = read_utf8(file).splitlines()
    elif not texts:
        texts = _read_stdin().splitlines()
    trained = load(folder)
    for text in trained.translate(texts, longest=longest, beam=beam, length_penalty=length_penalty):
        typer.echo(text)


def _read_stdin() -> str:
    """Standard input, which is UTF-8 in every locale."""
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"standard input has the byte 0x{error.object[error.start]:02x} at position "
            f"{error.start:,}, which is not UTF-8; expected texts in UTF-8"
        ) from None
