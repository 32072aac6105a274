"""The examples that a model is judged on, and what its answers to them are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset
from handgrad.data.encoding import TableEncoding
from handgrad.escaping import quoted
from handgrad.inference.figures import class_figures, number_figures
from handgrad.ops import sigmoid, softmax
from handgrad.printing import plain

if TYPE_CHECKING:
    from handgrad.inference.trained import TrainedModel


@dataclass(frozen=True)
class ClassAnswers:
    """Classes that were answered (N,), with the probabilities (N, K) behind them and the targets.

    names: of the classes; usual: the most frequent one in training, where that is known.
    """

    targets: Array
    probabilities: Array
    answers: Array
    names: Sequence[str]
    usual: int | None = None

    @cached_property
    def figures(self) -> dict[str, float]:
        return class_figures(self.targets, self.probabilities, self.answers)

    @property
    def baseline(self) -> dict[str, Any]:
        """The share that is right where each answer is the usual one."""
        if self.usual is None:
            return {}
        share = float((self.targets == self.usual).mean())
        return {"baseline_answer": quoted(self.names[self.usual]), "baseline_accuracy": share}

    @property
    def is_better(self) -> bool:
        """Return whether more answers are right than of the baseline, or none is known."""
        return self.usual is None or bool(
            self.figures["accuracy"] > self.baseline["baseline_accuracy"]
        )

    @property
    def score(self) -> float:
        """The mean logarithm of the right class's probability, the negative cross-entropy."""
        own = self.probabilities[np.arange(len(self.targets)), self.targets]
        return float(np.log(np.maximum(own, np.finfo(own.dtype).tiny)).mean())

    @property
    def mistakes(self) -> Array:
        """The wrong answers, first those whose right class was thought least likely."""
        own = self.probabilities[np.arange(len(self.targets)), self.targets]
        wrong = np.flatnonzero(self.answers != self.targets)
        return wrong[np.argsort(own[wrong], kind="stable")]


@dataclass(frozen=True)
class NumberAnswers:
    """Numbers that were predicted (N, ...), with the right ones; usual: their mean in training."""

    targets: Array
    predicted: Array
    usual: float | None = None

    @cached_property
    def figures(self) -> dict[str, float]:
        return number_figures(self.targets, self.predicted)

    @property
    def baseline(self) -> dict[str, Any]:
        """The root of the mean squared error where each answer is the usual one."""
        if self.usual is None:
            return {}
        errors = self.targets.astype(np.float64) - self.usual
        error = float(np.sqrt((errors**2).mean()))
        return {"baseline_answer": plain(self.usual), "baseline_error": error}

    @property
    def is_better(self) -> bool:
        """Return whether the error is smaller than the baseline's, or none is known."""
        return self.usual is None or bool(
            self.figures["root_mean_squared_error"] < self.baseline["baseline_error"]
        )

    @property
    def score(self) -> float:
        """R², or 0 where that is not defined."""
        return self.figures.get("r2", 0.0)

    @property
    def mistakes(self) -> Array:
        """The answers, first those that are furthest from the right number."""
        errors = np.abs(self.predicted - self.targets).reshape(len(self.targets), -1).max(axis=1)
        return np.argsort(-errors, kind="stable")


@dataclass(frozen=True)
class Judged:
    """Examples with their targets, as the loss takes them, and what is known of them.

    origins: where each is from, the row of a table or a file's name; usual: the answer that needs
    no model, as `usual_answer` finds it; columns: those of a table, each with the numbers of an
    example that it became, and plan: the one by which they were read, if there is one.
    """

    x: Any
    y: Any
    classes: Sequence[str] | None = None
    origins: Array | None = None
    usual: float | None = None
    columns: Mapping[str, Sequence[int]] = field(default_factory=dict)
    plan: TableEncoding | None = None

    @classmethod
    def of(cls, data: Dataset) -> Judged:
        """The test part of a data set."""
        return cls(
            data.x_test,
            data.y_test,
            data.classes or None,
            data.origins.get("test"),
            usual_answer(data.y_train),
            columns_of(data, data.x_test),
            data.encoding,
        )

    def name(self, i: int, part: str) -> str:
        """The name of an example: "row 17", the name of its file, or its index in the part."""
        if self.origins is None:
            return f"{part} example {i}"
        origin = self.origins[i]
        return str(origin) if self.origins.dtype.kind == "U" else f"row {origin}"

    def answers(self, trained: TrainedModel, outputs: Array) -> ClassAnswers | NumberAnswers | None:
        """The answers in outputs of the model; None where they are neither classes nor numbers."""
        y = np.asarray(self.y)
        if trained.task == "binary" and outputs.shape[1:] in ((), (1,)) and y.size == len(y):
            yes = sigmoid.forward(outputs.reshape(-1, 1).astype(np.float64))[0]
            probabilities = np.concatenate([1 - yes, yes], axis=1)
            return self._classes(trained, (y.ravel() > 0.5).astype(np.int64), probabilities)
        if y.dtype.kind in "iu" and y.ndim == 1 and outputs.ndim == 2:
            return self._classes(trained, y, softmax.forward(outputs.astype(np.float64))[0])
        if trained.task == "regression" and y.size == outputs.size:
            predicted, targets, usual = outputs.reshape(y.shape), y, self.usual
            if trained.targets is not None:
                undo = trained.targets.undo
                predicted, targets = undo(predicted), undo(targets)
                usual = None if usual is None else float(undo(np.array([usual]))[0])
            return NumberAnswers(targets, predicted, usual)
        return None

    def _classes(self, trained: TrainedModel, targets: Array, probabilities: Array) -> ClassAnswers:
        names = self.classes or [str(k) for k in range(probabilities.shape[1])]
        usual = None if self.usual is None else round(self.usual)
        return ClassAnswers(targets, probabilities, trained.decide(probabilities), names, usual)


def usual_answer(y: Any) -> float | None:
    """The most frequent class of targets (N,) that are indices, the mean of numbers, else None."""
    if not isinstance(y, np.ndarray) or not y.size:
        return None
    if y.dtype.kind in "iu" and y.ndim == 1 and y.min() >= 0:
        return float(np.bincount(y).argmax())
    if y.dtype.kind == "f" and y.size == len(y):
        return float(y.mean(dtype=np.float64))
    return None


def columns_of(data: Any, x: Any) -> dict[str, Sequence[int]]:
    """The columns of a table, each with the numbers that it became in examples x (N, D)."""
    plan = getattr(data, "encoding", None)
    names = list(map(str, getattr(data, "columns", ())))
    shape: tuple[int, ...] = getattr(x, "shape", ())
    if isinstance(plan, TableEncoding):
        widths = [len(column.names) for column in plan.columns if column.kind != "left out"]
    else:
        widths = [1] * len(names)
    if len(shape) != 2 or sum(widths) != shape[1]:
        return {}
    ends = np.cumsum(widths)
    starts = ends - widths
    return {
        name: range(start, end)
        for name, start, end in zip(names, starts.tolist(), ends.tolist(), strict=True)
    }
