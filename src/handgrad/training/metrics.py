"""What is counted while a model learns, and how a model is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ShapeError


def count_correct(outputs: Array, targets: Array) -> int | None:
    """How many predictions are right; None where the targets are not class indices.

    The classes are on axis 1 of `outputs`, as cross-entropy has them; the prediction is the first
    largest entry.
    """
    if targets.dtype.kind not in "iu" or outputs.ndim != targets.ndim + 1:
        return None
    return int(np.count_nonzero(outputs.argmax(axis=1) == targets))


def mean_weight(loss: Any, targets: Array) -> float:
    """What the loss divided by: its own `denominator(targets)`, or else the number of examples."""
    denominator = getattr(loss, "denominator", None)
    return float(len(targets) if denominator is None else denominator(targets))


@dataclass
class Sums:
    """Running sums of one epoch; saved in a checkpoint as they stand."""

    examples: int = 0
    loss: float = 0.0
    weight: float = 0.0
    correct: int = 0
    judged: int = 0

    def add(self, loss: float, weight: float, outputs: Array, targets: Array) -> None:
        """Count one batch, whose mean loss is `loss`, taken over `weight`."""
        self.examples += outputs.shape[0]
        self.loss += loss * weight
        self.weight += weight
        correct = count_correct(outputs, targets)
        if correct is not None:
            self.correct += correct
            self.judged += targets.size

    @property
    def mean_loss(self) -> float:
        return self.loss / self.weight if self.weight else 0.0

    @property
    def accuracy(self) -> float | None:
        return self.correct / self.judged if self.judged else None

    def state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Sums:
        return cls(**state)


@dataclass(frozen=True)
class Evaluation:
    """Loss and accuracy over a data set; `outputs` are the model's, where they were asked for."""

    loss: float
    accuracy: float | None
    examples: int
    outputs: Array | None = None


def as_pair(data: Any, part: str) -> tuple[Array, Array]:
    """(x, y) of a pair, or of the named part ("train", "validation", "test") of a data set."""
    x, y = (
        (getattr(data, f"x_{part}"), getattr(data, f"y_{part}"))
        if hasattr(data, f"x_{part}")
        else data
    )
    x = x if hasattr(x, "shape") else np.asarray(x)
    y = np.asarray(y)
    if len(x) != len(y):
        raise ShapeError(
            f"{part} data: x has {len(x)} examples and y {len(y)}; allowed: as many of each"
        )
    return x, y


def evaluate(
    model: Any, loss: Any, data: Any, batch_size: int = 256, *, keep_outputs: bool = False
) -> Evaluation:
    """Run `model` over (x, y), or over the test part of a data set, without training it.

    Batches are large enough to fill the machine and small enough to leave its memory alone; the
    result does not depend on them beyond rounding.
    """
    x, y = as_pair(data, "test")
    dtype = next((array.dtype for array in model.parameters.values()), x.dtype)
    sums = Sums()
    kept = []
    for first in range(0, len(x), batch_size):
        inputs = x[first : first + batch_size]
        if inputs.dtype.kind == "f":
            inputs = inputs.astype(dtype, copy=False)
        targets = y[first : first + batch_size]
        outputs = model.forward(inputs, training=False)[0]
        value = float(loss.forward(outputs, targets)[0])
        sums.add(value, mean_weight(loss, targets), outputs, targets)
        if keep_outputs:
            kept.append(np.array(outputs))
    return Evaluation(
        sums.mean_loss, sums.accuracy, sums.examples, np.concatenate(kept) if kept else None
    )
