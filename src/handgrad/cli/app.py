"""The typer application, put together from one file per command.

`--help` and completion answer at once because commands import what they work with when they are
called, and nothing but typer before.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

import handgrad as hg
from handgrad.cli import (
    check,
    derive,
    evaluate,
    exercise,
    exercises,
    export,
    generate,
    info,
    limit,
    lr,
    notes,
    ops,
    predict,
    recipes,
    train,
    translate,
    zoo,
)
from handgrad.errors import HandgradError, Interrupted
from handgrad.spelling import command_line
from handgrad.streams import CLOSED_PIPE, sentence_of

app = typer.Typer(
    name="handgrad",
    help="Neural networks with every gradient written out.",
    epilog="Exit codes: 0 done; 1 something was found to be wrong (check); 2 an error, reported in "
    "one sentence; 70 a fault of handgrad, with the name of a report; 129, 130, 143 stopped by "
    "SIGHUP, Ctrl-C, SIGTERM, a run after saving.",
    no_args_is_help=True,
    # Click writes no lines shorter than 50 letters unless it is told the width.
    context_settings={
        "help_option_names": ["-h", "--help"],
        # Otherwise click takes from a text what looks like a colour, which the stream escapes.
        "color": True,
        "terminal_width": min(shutil.get_terminal_size().columns, 80) - 2,
    },
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _reported(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its errors as one sentence: exit code 2, and 130 after Ctrl-C."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with command_line():
                command(*args, **kwargs)
        except HandgradError as error:
            raise _exit(2, str(error)) from None
        except BrokenPipeError:
            raise typer.Exit(CLOSED_PIPE) from None
        except (MemoryError, OSError) as error:
            raise _exit(2, sentence_of(error)) from None
        except Interrupted as error:
            raise _exit(error.exit_code, str(error), before="\n") from None
        except SystemExit as error:  # handgrad's own commands end by typer's exceptions
            found = f"the code of yours that was run ended the program: SystemExit: {error}"
            raise _exit(2, f"{found}; allowed: code that returns") from None
        except KeyboardInterrupt:
            raise _exit(130, "interrupted", before="\n") from None

    return _with_paths(run)


def _with_paths(command: Callable[..., None]) -> Callable[..., None]:
    """The command with `path` as the parser of every path among its parameters."""
    hints = get_type_hints(command, include_extras=True)
    for hint in hints.values():
        kind = getattr(hint, "__origin__", None)
        if Path in (kind, *get_args(kind)):
            hint.__metadata__[0].parser = path
    # Typer reads the signature, and would otherwise evaluate the annotations anew.
    own = inspect.signature(command)
    parameters = (each.replace(annotation=hints[each.name]) for each in own.parameters.values())
    command.__signature__ = own.replace(parameters=list(parameters))  # type: ignore[attr-defined]
    return command


def path(given: str) -> Path:
    """The path for a parameter, checked while it is text: an empty Path would be this folder."""
    try:
        # Here, because a wrong variable HANDGRAD_… is an error of this import.
        from handgrad.paths import as_path

        return as_path("command line", given)
    except HandgradError as error:  # as a ValueError it would be said by typer, in other words
        raise _exit(2, str(error)) from None


def _exit(code: int, sentence: str, before: str = "") -> typer.Exit:
    """The exit with this code, after the sentence on stderr where that can still be written to."""
    with contextlib.suppress(OSError, ValueError):
        typer.echo(f"{before}handgrad: {sentence}", err=True)
    return typer.Exit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(hg.__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Neural networks with every gradient written out."""


def _add(to: typer.Typer, name: str, command: Callable[..., None], examples: str) -> None:
    to.command(name, epilog=_shown(examples))(_reported(command))


def _shown(examples: str) -> str:
    """Examples for the end of a help text, whose lines \\b keeps as they are."""
    lines = examples.strip().replace("\n", "\n  ")
    return f"\b\nExamples:\n  {lines}"


#: In the order of the help: from training to looking into the mathematics.
for module in (
    *(train, zoo, evaluate, predict, generate, translate, export),
    *(check, derive, notes, exercise, exercises, limit, lr, ops, info),
):
    _add(app, module.__name__.rpartition(".")[2], module.command, module.EXAMPLES)

group = typer.Typer(
    invoke_without_command=True,
    callback=_reported(recipes.table),
    epilog=_shown(recipes.EXAMPLES),
)
_, show, copy = recipes.EXAMPLES.strip().splitlines()
_add(group, "show", recipes.show, show)
_add(group, "copy", recipes.copy, copy)
app.add_typer(group, name="recipes")
