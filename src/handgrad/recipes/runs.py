"""A trained run, opened from its folder for the commands that use it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from handgrad.errors import HandgradError, RunError
from handgrad.layers import Layer
from handgrad.recipes.building import build_model
from handgrad.recipes.recipe import Recipe
from handgrad.training import read_config
from handgrad.training.checkpoint import load_arrays
from handgrad.training.folder import Run
from handgrad.training.trainer import load_model_arrays


def read_recipe(folder: Path) -> Recipe:
    """The recipe of the run in `folder`, complete with the shape and classes of its data.

    Raises RunError where there is no run, or one that a program started with `hg.Trainer`.
    """
    text = read_config(folder)
    config = folder / "config.toml"
    try:
        known = tomllib.loads(text).get("data", {})
    except tomllib.TOMLDecodeError as error:
        raise RunError(f"{config} is damaged ({error}); expected the recipe of the run") from None
    if not {"shape", "classes"} <= set(known):
        raise RunError(
            f"{config} is no recipe; expected a run of `handgrad train`, because the model of a "
            "run started with hg.Trainer is in its program"
        )
    return Recipe.parse(str(config), text)


def load_model(folder: Path, recipe: Recipe) -> Layer:
    """The model of a run with its trained weights."""
    run = Run(folder)
    if not run.model.is_file():
        raise RunError(f"{folder} is not finished; expected {run.model}: {run.resume_command}")
    model = build_model(recipe, tuple(recipe.data["shape"]), len(recipe.data["classes"]))
    arrays, _ = load_arrays(run.model)
    try:
        load_model_arrays(model, arrays)
    except HandgradError as error:
        raise RunError(f"{run.model} does not fit {run.config}: {error}") from None
    return model
