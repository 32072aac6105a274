"""Figures that say how good answers are: of classes, of their probabilities, of numbers.

Source: van Rijsbergen, Information Retrieval (1979), chapter 7; Hanley, McNeil, The meaning and use
of the area under a receiver operating characteristic (ROC) curve (1982); Guo et al., On calibration
of modern neural networks (2017), section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from handgrad.arrays import Array

#: Bins of equal width that probabilities are counted in.
BINS: Final = 10


@dataclass(frozen=True)
class ByClass:
    """For each class the examples (K,), and precision, recall and F1 of the answers (K,).

    Precision is 0 for a class that is never answered, recall for one without examples; `known` are
    the classes that are the target or the answer of an example.
    """

    examples: Array
    precision: Array
    recall: Array
    f1: Array
    known: Array

    def mean(self, name: str) -> float:
        """The mean of a figure over the known classes, each counting alike."""
        return float(getattr(self, name)[self.known].mean())


@dataclass(frozen=True)
class Calibration:
    """The examples in bins of their answers' probability: how many, its mean, the share right."""

    examples: Array
    probability: Array
    right: Array

    @property
    def error(self) -> float:
        """The expected calibration error: the mean of |share right − probability| over examples."""
        gaps = np.abs(self.right - self.probability)
        return float((self.examples * gaps).sum() / self.examples.sum())


def by_class(targets: Array, answers: Array, classes: int) -> ByClass:
    """The figures of each class, for targets and answers (N,) that are indices of classes."""
    examples = np.bincount(targets, minlength=classes)
    given = np.bincount(answers, minlength=classes)
    right = np.bincount(targets[targets == answers], minlength=classes)
    precision, recall = right / np.maximum(given, 1), right / np.maximum(examples, 1)
    f1 = 2 * right / np.maximum(given + examples, 1)
    return ByClass(examples, precision, recall, f1, given + examples > 0)


def area_under_curve(positive: Array, scores: Array) -> float:
    """The probability that a positive example has a higher score than another one.

    Equal scores count half. It is the area under the receiver operating characteristic, and NaN
    without examples of both kinds.
    """
    _, index, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    yes = int(positive.sum())
    no = len(positive) - yes
    if not yes or not no:
        return math.nan
    return float((ranks[index][positive].sum() - yes * (yes + 1) / 2) / (yes * no))


def mean_area(targets: Array, probabilities: Array) -> float:
    """The area of the second of two classes; of more the mean over each against the rest.

    A class that no example has, or all have, takes no part.
    """
    if probabilities.shape[1] == 2:
        return area_under_curve(targets == 1, probabilities[:, 1])
    areas = [area_under_curve(targets == k, each) for k, each in enumerate(probabilities.T)]
    known = [area for area in areas if not math.isnan(area)]
    return float(np.mean(known)) if known else math.nan


def calibration(right: Array, probability: Array) -> Calibration:
    """The bins that have examples, of the probability (N,) of answers that are `right` or not."""
    edges = np.linspace(0, 1, BINS + 1)[1:-1]
    index = np.searchsorted(edges, probability)
    examples = np.bincount(index, minlength=BINS)
    kept = examples > 0
    sums = (np.bincount(index, each, BINS)[kept] for each in (probability, right))
    means = [each / examples[kept] for each in sums]
    return Calibration(examples[kept], *means)


def class_figures(targets: Array, probabilities: Array, answers: Array) -> dict[str, float]:
    """The figures of answers (N,) for targets (N,), with the probabilities (N, K) behind them.

    Precision, recall and F1 are means over classes; an area that is not defined is left out.
    """
    own = by_class(targets, answers, probabilities.shape[1])
    right = answers == targets
    confidence = probabilities[np.arange(len(answers)), answers]
    area = mean_area(targets, probabilities)
    return {
        "accuracy": float(right.mean()),
        **{f"macro_{name}": own.mean(name) for name in ("precision", "recall", "f1")},
        **({} if math.isnan(area) else {"auc": area}),
        "calibration_error": calibration(right, confidence).error,
    }


def number_figures(targets: Array, predicted: Array) -> dict[str, float]:
    """The mean absolute error, the root of the mean squared one, and R² of predictions.

    R² is the share of the targets' variance that is explained; it is left out where there is none.
    """
    errors = (predicted - targets).astype(np.float64)
    squares = float((errors**2).mean())
    spread = float(np.square(targets - targets.mean(axis=0)).mean(dtype=np.float64))
    return {
        "mean_absolute_error": float(np.abs(errors).mean()),
        "root_mean_squared_error": math.sqrt(squares),
        **({"r2": 1 - squares / spread} if spread else {}),
    }
