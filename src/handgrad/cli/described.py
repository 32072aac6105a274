"""The recipe that a command is given: by name, by file, or by a table that it is to learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from handgrad.errors import RecipeError

if TYPE_CHECKING:
    from handgrad.recipes import Recipe


class Described(NamedTuple):
    """A recipe with where its data are, and the name of what it learns."""

    recipe: Recipe
    data: Path | None
    name: str


def described(
    command: str,
    recipe: str,
    data: Path | None,
    target: str | None = None,
    changes: Sequence[str] = (),
) -> Described:
    """The recipe called so; for a .csv file the recipe `table`, which learns this file.

    Raises RecipeError where a table is given twice, or as `recipes.read` does.
    """
    from handgrad import recipes

    if recipe.endswith((".csv", ".csv.gz")):
        if data is not None:
            raise RecipeError(
                f"{command}: {recipe} together with --data {data}; allowed: one of them, or a "
                "recipe and --data"
            )
        data, name = Path(recipe), Path(recipe).name.partition(".")[0]
        read = recipes.read("table", changes).changed("data", name=name)
    else:
        read = recipes.read(recipe, changes)
        name = Path(read.name).stem
    if data is not None:
        read = read.changed("data", path=str(data.expanduser().absolute()))
    if target is not None:
        read = read.changed("data", target=target)
    return Described(read, data, name)
