"""Pairs of texts, one to be made from the other."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data import PairBatch, load_pairs
from handgrad.data.tokens import UNKNOWN
from handgrad.recipes.tasks.task import Task
from handgrad.training import Parts
from handgrad.training.reviews import PairsReview

if TYPE_CHECKING:
    from handgrad.recipes.recipe import Recipe

#: Keys of [data] that are not settings of the reader.
_OWN: Final = ("name", "path", "vocabularies")
#: Steps of the source and of the target in a random example.
_SOURCE_STEPS, _TARGET_STEPS = 7, 5


def load(recipe: Recipe, path: str | PathLike[str] | None = None) -> Task:
    """The task of a recipe that learns to make one text from another."""
    values = recipe.data
    given = path if path is not None else values.get("path")
    settings = {key: value for key, value in values.items() if key not in _OWN}
    data = load_pairs(values["name"], given, recipe.seed, **settings)
    summary = (
        f"{len(data.train):,} pairs to learn, {len(data.validation):,} to judge, "
        f"{len(data.test):,} to test, from {data.source.size} symbols to {data.target.size}"
    )
    if data.left_out:
        summary += f"; {data.left_out:,} were too long"
    return Task(
        data.name,
        Parts(data.train, data.validation, data.test),
        len(data.train),
        summary,
        {"vocabularies": [data.source.size, data.target.size]},
        PairsReview(data),
        {"source": data.source, "target": data.target},
        {"task": "pairs"},
    )


def example(recipe: Recipe, count: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Random pairs of different lengths."""
    source, target = recipe.data["vocabularies"]
    least = UNKNOWN + 1
    return tuple(
        PairBatch(
            rng.integers(min(least, source - 1), source, (count, _SOURCE_STEPS)),
            np.linspace(_SOURCE_STEPS, 2, count).astype(np.int64),
            rng.integers(min(least, target - 1), target, (count, _TARGET_STEPS)),
            np.linspace(2, _TARGET_STEPS, count).astype(np.int64),
        )
    )
