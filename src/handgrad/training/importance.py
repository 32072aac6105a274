"""Permutation importances: what a model loses where a column of a table says nothing any more.

The column is shuffled among the examples that the model is judged on, so that its values stay those
of the column and no longer belong to their rows. A column that became several numbers, as a text or
a date does, is shuffled as a whole. Of columns that say nearly the same each takes the other's
place, so both may seem to count for little.

Source: Breiman, Random forests (2001), section 10.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from handgrad.data.dataset import take
from handgrad.inference.trained import TrainedModel
from handgrad.training.judged import Judged

#: Shuffles of each column.
REPEATS: Final = 5
#: The most examples that are shuffled, and numbers that all shuffles together give to the model.
_MOST_EXAMPLES: Final = 2000
_LEAST_EXAMPLES: Final = 200
_MOST_NUMBERS: Final = 4e8
#: The same, where the fewest examples are shuffled: above it importances would take longer than the
#: training. A call of the model counts as so many numbers.
_MOST_OF_ALL: Final = 2e9
_CALL: Final = 2e4
_BATCH: Final = 256


@dataclass(frozen=True)
class Importance:
    """The mean fall of the answers' score when a column is shuffled, and its deviation."""

    column: str
    fall: float
    deviation: float


def importances(
    trained: TrainedModel, judged: Judged, seed: int, repeats: int = REPEATS
) -> list[Importance]:
    """The importance of each column, the largest first; none where the examples are no table, or
    one with too many columns.

    `seed` decides the shuffles, and the examples where there are too many. The score is that of
    `ClassAnswers` or `NumberAnswers`.
    """
    rng = np.random.default_rng(seed)
    columns = judged.columns
    if not columns or len(judged.x) < 2 or too_many(judged, repeats):
        return []
    x = np.asarray(judged.x)
    numbers = len(columns) * repeats * x.shape[1]
    most = int(min(_MOST_EXAMPLES, max(_LEAST_EXAMPLES, _MOST_NUMBERS // numbers)))
    chosen = np.sort(rng.permutation(len(x))[:most])
    x, part = x[chosen], replace(judged, y=take(judged.y, chosen), origins=None)
    whole = _score(trained, part, x)
    if whole is None:
        return []
    found = []
    for name, own in columns.items():
        falls = []
        for _ in range(repeats):
            shuffled = x.copy()
            shuffled[:, own] = x[rng.permutation(len(x))][:, own]
            falls.append(whole - (_score(trained, part, shuffled) or 0.0))
        found.append(Importance(name, float(np.mean(falls)), float(np.std(falls))))
    return sorted(found, key=lambda each: -each.fall)


def too_many(judged: Judged, repeats: int = REPEATS) -> str:
    """A sentence where the columns are too many for each to be shuffled; nothing otherwise."""
    if not judged.columns:
        return ""
    columns, width = len(judged.columns), np.shape(judged.x)[-1]
    examples = min(len(judged.x), _LEAST_EXAMPLES)
    if columns * repeats * (examples * width + _CALL) <= _MOST_OF_ALL:
        return ""
    return (
        f"Its {columns:,} columns are too many for importances: to shuffle each of them would take "
        "longer than the training."
    )


def _score(trained: TrainedModel, judged: Judged, x: np.ndarray) -> float | None:
    """The score of the answers to x (N, D); None where they are neither classes nor numbers."""
    model = trained.model
    dtype = next((array.dtype for array in model.parameters.values()), x.dtype)
    batches = (x[i : i + _BATCH].astype(dtype) for i in range(0, len(x), _BATCH))
    outputs = np.concatenate([model.forward(batch, training=False)[0] for batch in batches])
    answers = judged.answers(trained, outputs)
    return None if answers is None else answers.score
