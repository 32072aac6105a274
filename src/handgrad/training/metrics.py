"""Metrics, counted while a model learns, and its evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.data.given import TrainingData
from handgrad.data.sources import Source, as_source
from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.losses import Loss
from handgrad.optimizers import global_norm
from handgrad.training.replicas import ALONE, Replicas


@dataclass
class Sums:
    """Running sums of one epoch; saved in a checkpoint as they stand."""

    examples: int = 0
    loss: float = 0.0
    weight: float = 0.0
    correct: int = 0
    judged: int = 0

    def add(self, rows: Array) -> None:
        """Add the values of other sums, one after another, each as a row of its fields."""
        for row in rows.tolist():
            for field, value in zip(fields(self), row, strict=True):
                was = getattr(self, field.name)
                setattr(self, field.name, was + type(was)(value))

    @property
    def mean_loss(self) -> float:
        """By what the losses' means were taken over; 0 before the first batch."""
        return self.loss / self.weight if self.weight else 0.0

    @property
    def accuracy(self) -> float | None:
        """The share of right predictions; None where none was judged."""
        return self.correct / self.judged if self.judged else None


class Judge:
    """Counts what batches are worth under one loss, which is a mean or a sum over its batch.

    Cross-entropy over class indices takes its mean over the targets it does not ignore, weighted by
    class where it has weights; every other loss over the examples. A prediction is the first
    largest entry along the axis where cross-entropy has the classes; ignored targets are not
    judged.
    """

    def __init__(self, loss: Any) -> None:
        options = getattr(loss, "options", {})
        reduction = options.get("reduction", "mean")
        if reduction == "none":
            raise ArgumentError("loss: reduction is 'none'; allowed here: one that gives a scalar")
        self.is_sum = reduction != "mean"
        self._class_axis = getattr(loss, "class_axis", 1)
        self._ignored = options.get("ignore_index")
        weight = options.get("weight")
        self._class_weights = None if weight is None else np.asarray(weight, np.float64)

    def count(self, sums: Sums, value: float, outputs: Array, targets: Array) -> float:
        """Add one batch with this loss to `sums`; returns what its mean is taken over."""
        return self.count_predicted(sums, value, self.predicted(outputs, targets), targets)

    def predicted(self, outputs: Array, targets: Array) -> Array | None:
        """The classes that the outputs predict; None where targets are no classes."""
        if targets.dtype.kind not in "iu" or outputs.ndim != targets.ndim + 1:
            return None
        found: Array = outputs.argmax(axis=self._class_axis)
        return found

    def count_predicted(
        self, sums: Sums, value: float, predicted: Array | None, targets: Array
    ) -> float:
        """`count` for a batch of which the predictions are known."""
        if predicted is None:
            weight = float(len(targets))
        else:
            hits = predicted == targets
            judged = targets.size
            if self._ignored is not None:
                counted = targets != self._ignored
                hits &= counted
                judged = int(np.count_nonzero(counted))
            sums.correct += int(np.count_nonzero(hits))
            sums.judged += judged
            if self._class_weights is not None:
                weight = float(self._class_weights[targets[counted]].sum())
            else:
                weight = float(len(targets) if self._ignored is None else judged)
        sums.examples += len(targets)
        sums.weight += weight
        sums.loss += value if self.is_sum else value * weight
        return weight


@dataclass(frozen=True)
class Evaluation:
    """Loss and accuracy over a data set; `outputs` are the model's, where they were asked for."""

    loss: float
    accuracy: float | None
    examples: int
    outputs: Array | None = None


def layer_norms(gradients: Mapping[str, Array]) -> dict[str, float]:
    """The norm of every layer's gradients together."""
    layers: dict[str, dict[str, Array]] = {}
    for name, gradient in gradients.items():
        layers.setdefault(name.rpartition(".")[0], {})[name] = gradient
    return {layer: global_norm(arrays) for layer, arrays in layers.items()}


def inputs_in(dtype: np.dtype[Any], inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The arrays of a source, floating-point ones in `dtype`."""
    return tuple(
        each.astype(dtype) if each.dtype.kind == "f" and each.dtype != dtype else each
        for each in inputs
    )


def evaluate(
    model: Layer,
    loss: Loss,
    data: tuple[Array, Array] | Source | TrainingData,
    batch_size: int = 256,
    *,
    keep_outputs: bool = False,
    replicas: Replicas = ALONE,
) -> Evaluation:
    """Run `model` over (x, y), a source, or the test part of a data set, without training it.

    Batches are large enough to fill the machine and small enough to leave its memory alone; the
    result does not depend on them beyond rounding. A loss that is a sum is given per example.
    `replicas` share the batches, to the same bits; outputs are kept by one process alone.
    """
    dtype = next((array.dtype for array in model.parameters.values()), np.dtype(np.float32))
    source: Source = as_source(data, "test", dtype)
    every = source.every()
    judge = Judge(loss)
    firsts = range(0, len(every), batch_size)
    counted = np.zeros((len(firsts), len(fields(Sums))))
    kept = []
    for i in range(replicas.rank, len(firsts), replicas.size):
        inputs, targets = source.gather(every[firsts[i] : firsts[i] + batch_size])
        outputs = model.forward(*inputs_in(dtype, inputs), training=False)[0]
        value = float(loss.forward(outputs, targets)[0])
        own = Sums()
        judge.count(own, value, outputs, targets)
        counted[i] = astuple(own)
        if keep_outputs:
            kept.append(np.array(outputs))
    replicas.add(counted)
    sums = Sums()
    sums.add(counted)
    return Evaluation(
        sums.mean_loss, sums.accuracy, sums.examples, np.concatenate(kept) if kept else None
    )
