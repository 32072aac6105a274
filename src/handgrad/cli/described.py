"""The recipe that a command is given: by name, by file, or by data that it is to learn."""

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
    """The recipe called so; for a table or a folder `table` or `pictures`, which learn it.

    Raises RecipeError where data are given twice, or as `recipes.read` does.
    """
    from handgrad import recipes

    learner = _learner(recipe)
    if learner is not None:
        if data is not None:
            raise RecipeError(
                f"{command}: {recipe} together with --data {data}; allowed: one of them, or a "
                "recipe and --data"
            )
        data, name = Path(recipe), Path(recipe).absolute().name.partition(".")[0]
        read = recipes.read(learner, changes).changed("data", name=name)
    else:
        read = recipes.read(recipe, changes)
        name = Path(read.name).stem
    if data is not None:
        read = read.changed("data", path=str(data.expanduser().absolute()))
    if target is not None:
        read = read.changed("data", target=target)
    return Described(read, data, name)


def _learner(given: str) -> str | None:
    """The recipe that learns a table or a folder; None where a recipe itself is given."""
    from handgrad import recipes
    from handgrad.data.table import is_table

    if is_table(given):
        return "table"
    return "pictures" if given not in recipes.names() and Path(given).is_dir() else None
