"""The typer application, put together from one file per command."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Annotated, Any

import typer

from handgrad.cli import (
    check,
    evaluate,
    exercise,
    exercises,
    generate,
    info,
    limit,
    notes,
    predict,
    recipes,
    train,
    translate,
)
from handgrad.cli.streams import sentence_of
from handgrad.errors import HandgradError
from handgrad.training import Interrupted
from handgrad.training.results import versions

app = typer.Typer(
    name="handgrad",
    help="Neural networks with every gradient written out.",
    epilog="Exit codes: 0 done; 1 something was found to be wrong (check); 2 an error, reported in "
    "one sentence; 129, 130, 143 stopped by SIGHUP, Ctrl-C, SIGTERM, a run after saving.",
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
            raise _exit(2, str(error)) from None
        except (MemoryError, OSError) as error:
            raise _exit(2, sentence_of(error)) from None
        except Interrupted as error:
            raise _exit(error.exit_code, str(error), before="\n") from None
        except KeyboardInterrupt:
            raise _exit(130, "interrupted", before="\n") from None

    return run


def _exit(code: int, sentence: str, before: str = "") -> typer.Exit:
    """The exit with this code, after the sentence on stderr where that can still be written to."""
    with contextlib.suppress(OSError, ValueError):
        typer.echo(f"{before}handgrad: {sentence}", err=True)
    return typer.Exit(code)


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


for module in (
    *(train, evaluate, predict, generate, translate),
    *(check, notes, exercise, exercises, limit, info, recipes),
):
    app.command(module.__name__.rpartition(".")[2])(_reported(module.command))
