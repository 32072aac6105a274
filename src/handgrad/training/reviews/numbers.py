"""A model that predicts a number: its errors in the unit of the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Pixels
from handgrad.data.ragged import Sequences
from handgrad.inference.preprocessing import Standardization
from handgrad.layers.base import Layer
from handgrad.training.report.charts import figure
from handgrad.training.report.scatter import scatter
from handgrad.training.review import Section

#: Examples that go through the model together.
_BATCH = 256


@dataclass(frozen=True)
class NumbersReview:
    """The mean absolute error on x (N, ...) with y (N,), which was learned as `targets` make it."""

    x: Array | Pixels | Sequences
    y: Array
    targets: Standardization

    def figures(self, model: Layer) -> dict[str, float]:
        return {"mean_absolute_error": float(np.abs(self._predicted(model) - self.y).mean())}

    def sections(self, model: Layer) -> list[Section]:
        drawing = scatter(self.y, self._predicted(model))
        if not drawing:
            return []
        note = (
            "Each point is an example that the model did not learn from: its right number across, "
            "the predicted one upward. On the line both are the same."
        )
        body = f'<div class="single">{figure("Predicted over right", drawing)}</div>'
        return [Section("How near it comes", note, body)]

    def _predicted(self, model: Layer) -> Array:
        parts: list[Any] = [self.x[i : i + _BATCH] for i in range(0, len(self.x), _BATCH)]
        outputs = np.concatenate([model(part) for part in parts])
        return self.targets.undo(outputs).reshape(len(self.y))
