"""What makes the arrays of a case, given a generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.checking.samples.makers import labels, normal, probabilities, uniform
from handgrad.checking.samples.table import Maker

__all__ = [
    "Maker",
    "booleans",
    "few_values",
    "fixed",
    "integers",
    "labels",
    "normal",
    "probabilities",
    "uniform",
]


def integers(high: int, *shape: int) -> Maker:
    return lambda rng: np.asarray(rng.integers(0, high, shape))


def booleans(*shape: int, share: float = 0.6) -> Maker:
    """True in about this share of the places."""
    return lambda rng: np.asarray(rng.random(shape) < share)


def fixed(values: Any) -> Maker:
    """The same values every time, such as lengths."""
    return lambda rng: np.array(values)


def few_values(*shape: int, low: int = -1) -> Maker:
    """Whole numbers from `low` to 1, as floats: ties everywhere."""
    return lambda rng: rng.integers(low, 2, shape).astype(np.float64)
