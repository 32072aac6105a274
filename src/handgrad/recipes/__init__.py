"""Recipes: TOML files that say what to train and how; those beside this file come with handgrad."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from handgrad.data.files import read_utf8
from handgrad.errors import DataError, RecipeError
from handgrad.paths import as_path
from handgrad.recipes.building import (
    Built,
    build,
    build_loss,
    build_model,
    completed,
    load_task,
)
from handgrad.recipes.recipe import Recipe
from handgrad.suggestions import did_you_mean

__all__ = [
    "Built",
    "Recipe",
    "build",
    "build_loss",
    "build_model",
    "completed",
    "load_task",
    "names",
    "read",
    "text",
]

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The recipes that come with handgrad."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read(recipe: str, changes: Sequence[str] = ()) -> Recipe:
    """A recipe by name, or from a TOML file, after `changes` such as `optimizer.lr=0.01`.

    Raises RecipeError where there is none, or naming what is wrong in it.
    """
    name = recipe if recipe in names() else str(as_path("recipe", recipe))
    return Recipe.parse(name, text(recipe), changes)


def text(recipe: str) -> str:
    """The TOML of a recipe. Raises RecipeError where there is none."""
    if recipe in names():
        path = _FOLDER / f"{recipe}.toml"
    else:
        path = as_path("recipe", recipe)
    if path.suffix != ".toml":
        if path.is_file() and path.suffix not in (".csv", ".tsv", ".txt"):
            raise RecipeError(
                f"{recipe} is a file of a kind that is not read; allowed: a .toml file with a "
                "recipe, or data: a .csv or .tsv table, as spreadsheets save one, or a .txt text"
            )
        hint = did_you_mean(recipe, names())
        raise RecipeError(
            f"{recipe} is no recipe; allowed: {', '.join(names())}, or a .toml file{hint}"
        )
    try:
        return read_utf8(path, "a recipe in TOML")
    except DataError as error:
        raise RecipeError(str(error)) from None
