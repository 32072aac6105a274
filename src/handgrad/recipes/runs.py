"""A trained run, opened from its folder for the commands that use it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from handgrad.errors import HandgradError, RecipeError, RunError
from handgrad.io.checkpoint import load_model_arrays
from handgrad.io.files import read_trained
from handgrad.layers import Layer
from handgrad.recipes.building import build_model
from handgrad.recipes.keys import task_of
from handgrad.recipes.recipe import Recipe
from handgrad.recipes.toml import read_toml
from handgrad.training import read_config
from handgrad.training.folder import Run

#: Keys of [data] once a recipe has met its data: of classes, of a text, of pairs.
_COMPLETE: Final = ({"shape", "classes"}, {"vocabulary"}, {"vocabularies"})

_SAID: Final = {"classification": "classes", "text": "text", "pairs": "pairs of texts"}


def has_recipe(folder: Path) -> bool:
    """Return whether the run was started from a recipe, and not by a program.

    Raises RunError where there is no run.
    """
    try:
        known = read_toml(read_config(folder)).get("data")
    except RecipeError as error:
        raise RunError(f"{folder / 'config.toml'}: {error}") from None
    return isinstance(known, dict) and any(keys <= set(known) for keys in _COMPLETE)


def read_recipe(folder: Path, changes: Sequence[str] = ()) -> Recipe:
    """The recipe of the run in `folder`, complete with the shape and classes of its data.

    changes: of the form `optimizer.lr=0.01`.
    Raises RunError where there is no run, or one that a program started with `hg.Trainer`, and
    RecipeError for a change that is not possible.
    """
    config = folder / "config.toml"
    if not has_recipe(folder):
        raise RunError(
            f"{config} is no recipe; expected a run of `handgrad train`, because the data of a "
            "run started with hg.Trainer are in its program"
        )
    return Recipe.parse(str(config), read_config(folder), changes)


def load_model(folder: Path, recipe: Recipe) -> Layer:
    """The model of a run with its trained weights, or with those of its last checkpoint.

    Raises RunError where a file of the run is missing or damaged, or where the weights are another
    model's.
    """
    run = Run(folder)
    arrays, metadata = run.load_model()
    if recipe.model.type == "pretrained" and run.finished:  # all weights are there, not in a folder
        return read_trained(run.model, arrays, metadata).model
    model = build_model(recipe)
    try:
        load_model_arrays(model, {**model.frozen_parameters, **arrays})
    except HandgradError as error:
        raise RunError(f"{run.model} does not fit {run.config}: {error}") from None
    return model


def check_task(folder: Path, recipe: Recipe, wanted: str, instead: str) -> None:
    """Raise RunError unless the run has the task `wanted`; `instead` says what to do."""
    found = task_of(recipe.model.type)
    if found != wanted:
        raise RunError(
            f"{folder} is a run on {_SAID[found]}; expected one on {_SAID[wanted]}; {instead}"
        )
