"""Options that several commands have, and what a shell completes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import typer

import handgrad as hg
from handgrad.errors import ArgumentError

Quiet: TypeAlias = Annotated[
    bool, typer.Option("-q", "--quiet", help="Print nothing but warnings and errors.")
]


def _columns(name: str, text: str) -> Any:
    """An option on columns of a table."""
    return typer.Option(f"--{name}", metavar="COLUMNS", help=text, show_default=False)


Use: TypeAlias = Annotated[
    list[str] | None,
    _columns("use", "Columns of a table to learn from, such as age,city: these and no others."),
]
Drop: TypeAlias = Annotated[list[str] | None, _columns("drop", "Columns of a table to leave out.")]
Categorical: TypeAlias = Annotated[
    list[str] | None, _columns("categorical", "Columns of a table to read as categories.")
]
Date: TypeAlias = Annotated[
    list[str] | None, _columns("date", "Columns of a table to read as dates.")
]
Number: TypeAlias = Annotated[
    list[str] | None, _columns("number", "Columns of a table to read as numbers.")
]


class Columns(NamedTuple):
    """The values of these options, after the target's name; None for one that is not given."""

    target: str | None = None
    use: list[str] | None = None
    drop: list[str] | None = None
    categorical: list[str] | None = None
    date: list[str] | None = None
    number: list[str] | None = None


Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="A setting for forward; may be repeated."),
]
Constructor: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An argument for the constructor of a class; may be repeated.",
        show_default=False,
    ),
]


#: Another setting behind the first, as in `d=3,h=2`.
_NEXT_SETTING: Final = re.compile(r"[,;]\s*[^\W\d]\w*\s*=[^=]")


def settings_of(
    texts: Iterable[str] | None, source: str, reserved: Iterable[str] = ()
) -> dict[str, Any]:
    """`eps=1e-3`, `axis=None`, `sizes=(3, 4)` or `act=relu` as names and values.

    A value is read as TOML, else as a literal of Python; anything else is a text, without quotes.
    Raises ArgumentError, beginning with `source`, for what has no name or value.
    """
    found = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.isidentifier():
            raise ArgumentError(f"{source} {text}: found no name and value; allowed: NAME=VALUE")
        if name in reserved:
            raise ArgumentError(
                f"{source} {name} is a setting of the check; allowed: settings of forward"
            )
        found[name] = _value(value, f"{source} {name}")
    return found


def _value(text: str, source: str) -> Any:
    from handgrad.recipes.changes import read_value
    from handgrad.targets import Bare

    value = read_value(text, source)
    is_quoted = text[:1] in ("'", '"')
    if not isinstance(value, str) or is_quoted:
        return value
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if _NEXT_SETTING.search(text):
            raise ArgumentError(
                f"{source}={text} holds several settings; allowed: one NAME=VALUE for each option"
            ) from None
        return Bare(text)


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
