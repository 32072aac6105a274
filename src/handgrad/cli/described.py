"""The recipe that a command is given: by name, by file, or by data that it is to learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from handgrad.errors import RecipeError

if TYPE_CHECKING:
    from handgrad.recipes import Recipe


#: Recipes for folders of data sets that are known by the names of their files.
_LEARNERS: Final = {"idx": "mnist-cnn", "cifar": "cifar-cnn", "ts": "vowels"}


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
    drop: Sequence[str] | None = None,
    changes: Sequence[str] = (),
) -> Described:
    """The recipe called so; for a table or a folder of data the recipe that learns such.

    Raises RecipeError where data are given twice, or as `recipes.read` does.
    """
    from handgrad import recipes
    from handgrad.data.files import as_path

    learner = _learner(recipe)
    if learner is not None:
        if data is not None:
            raise RecipeError(
                f"{command}: {recipe} together with --data {data}; allowed: one of them, or a "
                "recipe and --data"
            )
        data, name = Path(recipe), Path(recipe).absolute().name.partition(".")[0]
        read = recipes.read(learner, changes)
        if learner != "fashion-cnn":  # its name says which clothes the classes are
            read = read.changed("data", name=name)
    else:
        read = recipes.read(recipe, changes)
        name = Path(read.name).stem
    if data is not None:
        read = read.changed("data", path=str(as_path(command, data).absolute()))
    if target is not None:
        read = read.changed("data", target=target)
    if drop:
        read = read.changed("data", drop=list(drop))
    return Described(read, data, name)


def _learner(given: str) -> str | None:
    """The recipe that learns a table or a folder; None where a recipe itself is given."""
    from handgrad import recipes
    from handgrad.data import form_of
    from handgrad.data.table import is_table

    if is_table(given):
        return "table"
    if given in recipes.names() or not Path(given).is_dir():
        return None
    form = form_of(Path(given))
    if form == "idx" and "fashion" in Path(given).absolute().name.lower():
        return "fashion-cnn"
    return _LEARNERS.get(form or "", "pictures")
