"""The recipe that a command is given: by name, by file, or by data that it is to learn."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from handgrad.errors import RecipeError
from handgrad.escaping import quoted

if TYPE_CHECKING:
    from handgrad.cli.options import Columns
    from handgrad.recipes import Recipe


#: Recipes for folders of data sets that are known by the names of their files.
_LEARNERS: Final = {"idx": "mnist-cnn", "cifar": "cifar-cnn", "ts": "vowels"}
#: The ends of the names of texts.
_TEXTS: Final = (".txt", ".text", ".md")
#: Bytes of a text that tell pairs from running text.
_HEAD: Final = 1 << 16
#: Kinds of columns that have another name as an option.
_KINDS: Final = {"categorical": "category"}


class Described(NamedTuple):
    """A recipe with where its data are, and the name of what it learns."""

    recipe: Recipe
    data: Path | None
    name: str


def described(
    command: str,
    recipe: str,
    data: Path | None,
    columns: Columns,
    changes: Sequence[str] = (),
) -> Described:
    """The recipe called so; for a table, a text or a folder of data the recipe that learns such.

    Raises RecipeError where data are given twice, or as `recipes.read` does.
    """
    from handgrad import recipes
    from handgrad.paths import as_path

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
    given = _settings(command, columns)
    return Described(read.changed("data", **given) if given else read, data, name)


def _settings(command: str, columns: Columns) -> dict[str, Any]:
    """The options on columns as a recipe has them."""
    found: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for option, value in columns._asdict().items():
        if value is None:
            continue
        if option == "target":
            if not value.strip():
                raise RecipeError(f"{command}: --target {quoted(value)}; allowed: a column's name")
            found[option] = value
            continue
        names = [name for text in value for name in _names(command, option, text)]
        if option in ("use", "drop"):
            found[option] = names
            continue
        for name in names:
            if name in kinds:
                raise RecipeError(
                    f"{command}: {quoted(name)} is given twice, to --{option} too; allowed: one "
                    "kind for each column"
                )
            kinds[name] = _KINDS.get(option, option)
    return {**found, "kinds": kinds} if kinds else found


def _names(command: str, option: str, text: str) -> list[str]:
    """The names in `age,city`; one with a comma of its own is in double quotes."""
    try:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:
        names = []
    if not names or not all(names):
        raise RecipeError(
            f"{command}: --{option} {quoted(text)}; allowed: names of columns, such as age,city"
        )
    return names


def _learner(given: str) -> str | None:
    """The recipe that learns a table, a text or a folder; None where a recipe itself is given."""
    from handgrad import recipes
    from handgrad.data import form_of
    from handgrad.data.table import is_table

    if is_table(given):
        return "table"
    path = Path(given)
    if given in recipes.names():
        return None
    if path.suffix.lower() in _TEXTS and path.is_file():
        return "translate" if _has_pairs(path) else "text"
    if not path.is_dir():
        return None
    form = form_of(path)
    if form == "idx" and "fashion" in path.absolute().name.lower():
        return "fashion-cnn"
    return _LEARNERS.get(form or "", "pictures")


def _has_pairs(path: Path) -> bool:
    """Return whether the lines of a text have a tab each, between a source and a target."""
    with path.open("rb") as file:
        *whole, rest = file.read(_HEAD).split(b"\n")
    lines = [line for line in whole or [rest] if line.strip()]
    return bool(lines) and all(line.count(b"\t") == 1 for line in lines)
