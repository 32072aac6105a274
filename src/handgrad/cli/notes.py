"""`handgrad notes`: the derivation of an op or a model, printed from the code that runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from handgrad.cli.options import Constructor, Quiet, settings_of, targets
from handgrad.errors import ArgumentError
from handgrad.streams import standard_output

EXAMPLES: Final = """
handgrad notes layer_norm
handgrad notes attention --numbers -o attention.pdf
handgrad notes my.py:forward,backward --shape x=4,3
handgrad notes my.py:Dense --set n_in=3 --set n_out=4 --shape x=5,3
handgrad notes lstm --numbers --alive
handgrad notes relu --format md -o -
"""


def command(
    target: Annotated[
        str,
        typer.Argument(
            help="An op, a worked example (ffn, head_split, tiles), a recipe, a run's folder, "
            "module:object or file.py:object.",
            metavar="TARGET",
            autocompletion=targets,
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
            metavar="FORMAT",
            help="html, tex, md, pdf or slides (in HTML, or a PDF by the file's suffix). "
            "Otherwise by the suffix.",
            show_default=False,
        ),
    ] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="With every value of a small example.")
    ] = False,
    alive: Annotated[
        bool,
        typer.Option("--alive", help="A page that steps through the example, in HTML."),
    ] = False,
    lang: Annotated[str, typer.Option("--lang", metavar="en|ro", help="The language.")] = "en",
    eta: Annotated[
        float, typer.Option("--eta", help="The learning rate of the updates with --numbers.")
    ] = 0.1,
    shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="NAME=2,3",
            help="Shape of an input of your functions, as for `handgrad check`; may be repeated.",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="FILE.npz", help="Its inputs, by name or in order."),
    ] = None,
    constructor: Constructor = None,
    quiet: Quiet = False,
) -> None:
    """Write the notes of an op, a model, or your own functions.

    Exit code 0; 1 where a gradient was measured and is wrong, which the notes say at their top.
    """
    from handgrad.cli.inputs import arrays_for, given_arrays
    from handgrad.equations.notes import FORMATS, format_of, notes
    from handgrad.targets import resolve

    if format is not None and format not in FORMATS:
        raise ArgumentError(f"notes: format is {format!r}; allowed: {', '.join(FORMATS)}")
    if out not in (None, "-") and format is None:
        format = format_of(Path(str(out)))
    chosen = format or "html"
    if alive and chosen != "html":
        raise ArgumentError(f"notes: --alive is given with the format {chosen}; allowed: html")
    arrays: list[Any] = []
    found: Any = target
    if shapes or inputs is not None or constructor:
        given = given_arrays(shapes or (), inputs, 0)
        made_with = settings_of(constructor, "notes: --set")
        found = resolve(target, made_with, arrays=given.arrays)
        if given.without(found.made_of).arrays:
            arrays = arrays_for(found, given, like=None, options=(), seed=0)
    written = notes(found, *arrays, numbers=numbers, lang=lang, eta=eta, alive=alive)
    if out == "-":
        standard_output().write(written.rendered(chosen))
    else:
        suffix = "slides.html" if chosen == "slides" else chosen
        file = Path(out or f"{_stem(target)}.{suffix}")
        written.save(file, chosen)
        if not quiet:
            typer.echo(f"{file}")
    if not written.ok:
        typer.echo(f"handgrad: notes: {target} has a wrong gradient", err=True)
        raise typer.Exit(1)


def _stem(target: str) -> str:
    """A file's name for a target: `functions_norm` for `functions.py:norm`."""
    return re.sub(r"\W+", "_", target.replace(".py:", ":").removesuffix(".py")).strip("_")
