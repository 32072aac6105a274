"""The task of a recipe, by the type of its model: classes, a text, or one text from another."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from handgrad.arrays import Array
from handgrad.recipes.keys import task_of
from handgrad.recipes.tasks import classification, pairs, text
from handgrad.recipes.tasks.task import Task

if TYPE_CHECKING:
    from handgrad.recipes.recipe import Recipe

__all__ = ["Task", "example", "example_shape", "load"]

_TASKS: Any = {"classification": classification, "text": text, "pairs": pairs}


def load(recipe: Recipe, path: str | PathLike[str] | None = None) -> Task:
    """The recipe's data, from `path`, or where it says, or from HANDGRAD_DATA."""
    task: Task = _TASKS[task_of(recipe.model.type)].load(recipe, path)
    return task


def example(recipe: Recipe, count: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Random inputs for the model of a completed recipe."""
    found: tuple[Array, ...] = _TASKS[task_of(recipe.model.type)].example(recipe, count, rng)
    return found


def vectors(recipe: Recipe) -> dict[int, tuple[int, int]]:
    """The columns of a completed recipe's table that are levels: see `TableEncoding.vectors`."""
    return classification.vectors(recipe)


def example_shape(recipe: Recipe) -> tuple[int, ...]:
    """The shape of the first of these inputs without its batch axis."""
    x = example(recipe, 1, np.random.default_rng(0))[0]
    return tuple(x.shape[1:])
