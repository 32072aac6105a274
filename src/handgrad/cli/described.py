"""The recipe that a command is given: by name, by file, or by data that it is to learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    columns: Mapping[str, Any],
    changes: Sequence[str] = (),
) -> Described:
    """The recipe called so; for a table or a folder of data the recipe that learns such.

    columns: the options `target`, `drop` and `kinds` on the columns of a table, None if not given.
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
    given = {key: value for key, value in columns.items() if value}
    if "kinds" in given:
        given["kinds"] = dict(_named(command, each) for each in given["kinds"])
    if given:
        read = read.changed("data", **given)
    return Described(read, data, name)


def _named(command: str, given: str) -> tuple[str, str]:
    """The column and the kind of `--kind NAME=KIND`."""
    name, equals, kind = given.rpartition("=")
    if not (name and equals):
        raise RecipeError(f"{command}: --kind {given}; allowed: NAME=KIND, such as code=category")
    return name, kind


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
