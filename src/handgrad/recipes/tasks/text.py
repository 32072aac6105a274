"""A text to continue, token by token."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from handgrad.arrays import Array
from handgrad.data import Blocks, load_text
from handgrad.data.subwords import PretrainedTokenizer
from handgrad.errors import DataError
from handgrad.recipes.models import pretrained_folder
from handgrad.recipes.tasks.task import Task
from handgrad.training import Parts
from handgrad.training.reviews import TextReview

if TYPE_CHECKING:
    from handgrad.recipes.recipe import Recipe


def load(recipe: Recipe, path: str | PathLike[str] | None = None) -> Task:
    """The task of a recipe that learns to continue a text: any file, or Python's own topics."""
    values = recipe.data
    given = path if path is not None else values.get("path")
    settings: dict[str, Any] = {key: values[key] for key in ("unit", "validation") if key in values}
    # The scores of a large vocabulary are the largest arrays, so judging takes no more examples.
    judged: dict[str, int] = {}
    if recipe.model.type == "pretrained":
        judged["batch"] = recipe.training.get("batch_size", 64)
        if "unit" not in values:
            folder = pretrained_folder(recipe.model.settings["folder"])
            settings["tokenizer"] = PretrainedTokenizer.of_folder(folder)
    text = load_text(given, **settings)
    fewest = min(len(text.train), len(text.validation))
    if fewest <= values["block"]:
        raise DataError(
            f"{given or text.name} has {len(text.train):,} tokens to learn and "
            f"{len(text.validation):,} to judge; expected more than {values['block']:,} in either "
            "part, which is data.block"
        )
    train = Blocks(text.train, values["block"], values.get("blocks"))
    validation = Blocks(text.validation, values["block"])
    summary = (
        f"{len(text.train):,} tokens to learn, {len(text.validation):,} to judge, "
        f"{text.tokenizer.size} different"
    )
    return Task(
        text.name,
        Parts(train, validation),
        len(train),
        summary,
        {"vocabulary": text.tokenizer.size},
        TextReview(text, validation, recipe.seed, **judged),
        {"tokens": text.tokenizer},
        {"task": "text"},
    )


def example(recipe: Recipe, count: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Random blocks of tokens."""
    return (rng.integers(0, recipe.data["vocabulary"], (count, recipe.data["block"])),)
