"""`handgrad exercises`: the course."""

from __future__ import annotations

from typing import Final

import typer

EXAMPLES: Final = "handgrad exercises"


def command() -> None:
    """List the exercises of the course, from easy to hard.

    In each one a forward is given, and you write its backward: `handgrad exercise 1`.
    """
    from handgrad.exercises import NAMES, exercise

    for number in range(1, len(NAMES) + 1):
        typer.echo(f"{number:>2}  {exercise(number).title}")
