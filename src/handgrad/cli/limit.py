"""`handgrad limit`: the infinitely wide network of a recipe, on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from handgrad.cli.options import Quiet, known_recipes
from handgrad.errors import ArgumentError

EXAMPLES: Final = """
handgrad limit mnist-mlp --data mnist/
handgrad limit digits -o digits-limit.pdf
"""


def command(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe of `handgrad recipes`, or a .toml file.", autocompletion=known_recipes
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="The file to write: .html, .tex, .md or .pdf. Otherwise RECIPE-limit.html here.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="The data: a file or folder.", show_default=False),
    ] = None,
    examples: Annotated[
        int, typer.Option("--examples", help="Examples in the kernel, from the test part.")
    ] = 24,
    networks: Annotated[
        int, typer.Option("--networks", help="Random networks of each width.")
    ] = 10,
    widths: Annotated[
        str, typer.Option("--widths", help="Their hidden sizes, with commas between.")
    ] = "32,64,128,256,512",
    seed: Annotated[int, typer.Option("--seed", help="Of the random networks.")] = 0,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change the recipe; may be repeated.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write the page of a recipe's limit of infinite width.

    It has its program, its kernel, how random networks come to it, and depth.
    """
    from handgrad import recipes
    from handgrad.equations.notes import format_of
    from handgrad.limits.page import limit_notes

    try:
        sizes = [int(each) for each in widths.split(",")]
    except ValueError:
        raise ArgumentError(
            f"limit: --widths is {widths!r}; allowed: whole numbers with commas between"
        ) from None
    read = recipes.read(recipe, changes or ())
    file = out or Path(f"{Path(recipe).stem}-limit.html")
    format_of(file)
    made = limit_notes(
        read, data=data, examples=examples, widths=sizes, networks=networks, seed=seed
    )
    made.save(file)
    if not quiet:
        typer.echo(f"{file}")
