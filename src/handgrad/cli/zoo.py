"""`handgrad zoo`: small models with the figures that they reach, trained on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from handgrad.cli.options import Quiet, known_recipes
from handgrad.errors import ArgumentError, RunError
from handgrad.escaping import listed, one_line, quoted
from handgrad.suggestions import did_you_mean

if TYPE_CHECKING:
    from handgrad.recipes import Recipe
    from handgrad.recipes.promised import Promise

EXAMPLES: Final = """
handgrad zoo
handgrad zoo digits text
handgrad evaluate zoo/digits
"""
#: The parts of a recipe, beside its training, that make it another one.
_SECTIONS: Final = ("model", "layers", "loss", "optimizer", "schedule", "augmentation")
_COLUMNS: Final = ("model", "learns", "promises", "takes", "here")


def command(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Models to train, or to look at again; none lists all.",
            metavar="MODEL",
            autocompletion=known_recipes,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="The folder of the zoo, with a run for each model.")
    ] = Path("zoo"),
    quiet: Quiet = False,
) -> None:
    """List models that promise a figure, or train some.

    They are recipes that promise a figure on their test data. A model that is not in the folder is
    trained, by `handgrad train`; then its figure stands beside the promised one. Exit code 0; 1
    where one is worse by more than chance. All commands on runs take a folder such as zoo/digits.
    """
    from handgrad import recipes
    from handgrad.recipes.promised import Promise

    read = [recipes.read(name) for name in recipes.names()]
    known = {each.name: (each, promise) for each in read if (promise := Promise.of(each.about))}
    unknown = [name for name in models or () if name not in known]
    if unknown:
        meant = did_you_mean(unknown[0], known)
        raise ArgumentError(f"zoo: found {quoted(unknown[0])}; allowed: {listed(known)}{meant}")
    if not models:
        from handgrad.cli.tables import print_table

        print_table(_COLUMNS, [_row(*each, out) for each in known.values()])
        return
    kept = [_looked_at(*known[name], out / name, quiet=quiet) for name in models]
    if not all(kept):
        raise typer.Exit(1)


def _row(recipe: Recipe, promise: Promise, out: Path) -> list[str]:
    from handgrad.cli.recipes import duration, missing
    from handgrad.training.folder import Run

    lacks = missing(recipe)
    here = f"lacks {', '.join(lacks)}" if lacks else "not trained"
    if Run(out / recipe.name).finished:
        here = _found(promise, _summary(recipe, out / recipe.name))
    return [recipe.name, recipe.description, str(promise), duration(recipe), here]


def _looked_at(recipe: Recipe, promise: Promise, folder: Path, *, quiet: bool) -> bool:
    """Return whether the run in the folder keeps the promise; it is trained if it is not there."""
    from handgrad.cli import train
    from handgrad.training.folder import Run

    run = Run(folder)
    if not run.finished:
        if run.config.exists():
            train.command(resume=folder, quiet=quiet)
        else:
            train.command(recipe.name, out=folder, quiet=quiet)
    summary = _summary(recipe, folder)
    typer.echo(f"{one_line(str(folder))}: {_found(promise, summary)}, promised {promise}")
    return promise.is_kept(summary)


def _summary(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """The summary of a finished run of this recipe."""
    from handgrad.recipes.runs import read_recipe
    from handgrad.training.folder import Run

    found, run = read_recipe(folder), Run(folder)
    same = all(getattr(found, each) == getattr(recipe, each) for each in _SECTIONS)
    if not same or not recipe.training.items() <= found.training.items():
        raise RunError(
            f"{folder} has a run of another recipe than {recipe.name}; expected one of "
            "`handgrad zoo`, or another --out"
        )
    run.read_config()
    return run.read_summary()


def _found(promise: Promise, summary: dict[str, Any]) -> str:
    mark = "✓" if promise.is_kept(summary) else "✗"
    return f"{mark} {promise.shown(promise.found(summary))}"
