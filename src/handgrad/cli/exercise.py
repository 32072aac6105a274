"""`handgrad exercise`: write a backward, and hear what is wrong with it."""

from __future__ import annotations

import sys
import textwrap
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handgrad.cli.check import show
from handgrad.errors import ArgumentError
from handgrad.writing import write_new

if TYPE_CHECKING:
    from handgrad.exercises import Exercise

EXAMPLES: Final = """
handgrad exercise 3
handgrad exercise 3 --start my.py
handgrad exercise 3 my.py
handgrad exercise 3 --hint
"""


def command(
    number: Annotated[int, typer.Argument(help="One of `handgrad exercises`.", metavar="NUMBER")],
    answer: Annotated[
        Path | None, typer.Argument(help="The file with your backward.", metavar="FILE.py")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option("--start", metavar="FILE.py", help="Write a file to begin with."),
    ] = None,
    hints: Annotated[
        int, typer.Option("--hint", count=True, help="A hint; --hint --hint: one more.")
    ] = 0,
    solution: Annotated[
        bool, typer.Option("--solution", help="Print a backward that is right.")
    ] = False,
) -> None:
    """Print an exercise of the course, or check an answer.

    Without a file the task is printed. A file is run, and what is wrong with its backward is said.
    Exit code 0: it is right; 1: it is not, or not written yet; 2: an error.
    """
    from handgrad.exercises import exercise

    chosen = exercise(number)
    if start is not None:
        _write(chosen, start)
    elif answer is None and not hints and not solution:
        _print_task(chosen)
    for hint in chosen.hints[:hints]:
        typer.echo(textwrap.fill(f"- {hint}", 80, subsequent_indent="  "))
    if solution:
        typer.echo(chosen.solution, nl=False)
        typer.echo(f"\nWith all its settings it is handgrad/ops/{chosen.op}.py.")
    if answer is not None:
        _check(chosen, answer)


def _print_task(chosen: Exercise) -> None:
    typer.echo(f"Exercise {chosen.number}. {chosen.title}\n\n{chosen.task}\n")
    typer.echo(f"{chosen.forward}")
    typer.echo("Write backward; it takes the gradient of what forward returns, and the cache, and")
    typer.echo(f"returns {chosen.wanted}.\n")
    typer.echo(f"handgrad exercise {chosen.number} --start my.py   writes a file to begin with")
    typer.echo(f"handgrad exercise {chosen.number} my.py           checks it")
    typer.echo(f"handgrad exercise {chosen.number} --hint          gives a hint")


def _write(chosen: Exercise, file: Path) -> None:
    """The file to begin with; one that is there is somebody's work, and stays."""
    if file.suffix != ".py":
        raise ArgumentError(f"exercise: --start {file}: found no Python file; allowed: NAME.py")
    try:
        write_new(file, chosen.start.encode())
    except FileExistsError:
        raise ArgumentError(f"exercise: {file} exists; allowed: a new file") from None
    typer.echo(f"{file}")


def _check(chosen: Exercise, answer: Path) -> None:
    from handgrad.exercises import NAMES

    with redirect_stdout(sys.stderr):  # what the learner's code prints is no part of the report
        report = chosen.examine(answer)
    show(report)
    if report.ok:
        typer.echo(f"Its derivation: handgrad notes {chosen.op}")
        if chosen.number < len(NAMES):
            typer.echo(f"Next: handgrad exercise {chosen.number + 1}")
        return
    typer.echo(f"A hint: handgrad exercise {chosen.number} --hint")
    raise typer.Exit(1)
