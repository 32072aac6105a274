"""A model that predicts a number: its errors in the unit of the targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from handgrad.arrays import Array
from handgrad.inference.preprocessing import Standardize
from handgrad.layers.base import Layer
from handgrad.training.review import Section

#: Examples that go through the model together.
_BATCH = 256


@dataclass(frozen=True)
class NumbersReview:
    """The mean absolute error on x (N, ...) with y (N,), which was learned as `targets` make it."""

    x: Array
    y: Array
    targets: Standardize

    def figures(self, model: Layer) -> dict[str, float]:
        parts = [self.x[i : i + _BATCH] for i in range(0, len(self.x), _BATCH)]
        outputs = np.concatenate([model(part) for part in parts])
        predicted = self.targets.undo(outputs).reshape(len(self.y))
        return {"mean_absolute_error": float(np.abs(predicted - self.y).mean())}

    def sections(self, model: Layer) -> list[Section]:
        return []
