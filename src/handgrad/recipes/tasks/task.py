"""A task: data in parts, and what has to be known beside the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handgrad.data.tokens import TextCodec
from handgrad.training.review import Review


@dataclass(frozen=True)
class Task:
    """The data of a recipe, ready to train on.

    data: as `training.train` takes it; examples: how many an epoch has; summary: the data in a few
    words; found: the values of [data] from which the model is built again; tokenizers: those that a
    run keeps beside its weights, by the name of their file; about: entries of `TrainedModel` that
    the data do not say.
    """

    name: str
    data: Any
    examples: int
    summary: str
    found: Mapping[str, Any]
    review: Review | None = None
    tokenizers: Mapping[str, TextCodec] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Put the tokenizers into the folder of a run."""
        for name, tokenizer in self.tokenizers.items():
            tokenizer.save(folder / f"{name}.json")
