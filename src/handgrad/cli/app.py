"""The typer application, put together from one file per command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import typer

from handgrad.cli import check, evaluate, generate, info, notes, predict, recipes, train, translate
from handgrad.errors import HandgradError
from handgrad.training.results import versions

app = typer.Typer(
    name="handgrad",
    help="Neural networks with every gradient written out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _reported(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its errors as one sentence: exit code 2, and 130 after Ctrl-C."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except HandgradError as error:
            typer.echo(f"handgrad: {error}", err=True)
            raise typer.Exit(2) from None
        except MemoryError as error:
            typer.echo(f"handgrad: memory ran out: {error}; allowed: smaller sizes", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt as error:
            typer.echo(f"\nhandgrad: {str(error) or 'interrupted'}", err=True)
            raise typer.Exit(130) from None

    return run


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(versions()["handgrad"])
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Neural networks with every gradient written out."""


for module in (train, evaluate, predict, generate, translate, check, notes, info, recipes):
    app.command(module.__name__.rpartition(".")[2])(_reported(module.command))
