"""`handgrad recipes`: what can be trained by name, and a copy of it to change."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handgrad.cli.options import known_recipes
from handgrad.errors import ArgumentError
from handgrad.writing import write_new

if TYPE_CHECKING:
    from handgrad.recipes import Recipe

EXAMPLES: Final = """
handgrad recipes
handgrad recipes show digits
handgrad recipes copy digits my.toml
"""
_COLUMNS: Final = ("recipe", "learns", "data", "takes", "reaches", "runs now")

Name = Annotated[
    str, typer.Argument(help="A recipe of `handgrad recipes`.", autocompletion=known_recipes)
]


def table(context: typer.Context) -> None:
    """List the recipes, show one, or copy one to change it.

    They take about so long on two cores. A recipe runs now where its files and packages are here;
    HANDGRAD_DATA points to files, or --data of `handgrad train`.
    """
    if context.invoked_subcommand is not None:
        return
    from handgrad import recipes
    from handgrad.cli.tables import print_table

    print_table(_COLUMNS, [_row(recipes.read(name)) for name in recipes.names()])


def show(recipe: Name) -> None:
    """Print the facts of a recipe, and the recipe itself in TOML."""
    from handgrad import recipes
    from handgrad.data import EXPECTED

    read = recipes.read(recipe)
    facts = dict(zip(_COLUMNS, _row(read), strict=True))
    needs = EXPECTED.get(read.data["name"], facts["data"])
    for name, fact in {**facts, "data": needs}.items():
        typer.echo(f"# {name}: {fact}")
    typer.echo()
    typer.echo(recipes.text(recipe), nl=False)


def copy(
    recipe: Name,
    file: Annotated[Path, typer.Argument(help="The new file.", metavar="FILE.toml")],
) -> None:
    """Write a recipe into a file, to be changed and trained by its path."""
    from handgrad import recipes

    if file.suffix != ".toml":
        raise ArgumentError(f"recipes: FILE is {file}; allowed: a name that ends in .toml")
    content = recipes.text(recipe)
    try:
        write_new(file, content.encode())
    except FileExistsError:
        raise ArgumentError(f"recipes: {file} is there already; allowed: a new file") from None
    typer.echo(f"{file}: train it with handgrad train {file}")


def _row(recipe: Recipe) -> list[str]:
    from handgrad.data import EXPECTED
    from handgrad.recipes.promised import Promise

    name, lacks = str(recipe.data["name"]), missing(recipe)
    needs = ["files"] * ("nothing" not in EXPECTED.get(name, "")) + _packages(recipe)
    return [
        recipe.name,
        recipe.description,
        f"{name} ({', '.join(needs)})" if needs else name,
        duration(recipe),
        str(Promise.of(recipe.about) or "–"),
        f"no, lacks {', '.join(lacks)}" if lacks else "yes",
    ]


def missing(recipe: Recipe) -> list[str]:
    """The files and packages that a recipe needs and that are not here."""
    from handgrad.data import is_here

    lacks = [] if is_here(str(recipe.data["name"])) else ["files"]
    return lacks + [each for each in _packages(recipe) if find_spec(each) is None]


def duration(recipe: Recipe) -> str:
    """The time that a recipe takes, in words."""
    seconds = recipe.about.get("seconds")
    if seconds is None:
        return "–"
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _packages(recipe: Recipe) -> list[str]:
    packages: list[str] = recipe.about.get("packages", [])
    return packages
