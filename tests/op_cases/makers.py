"""What makes the arrays of a case, given a generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Maker = Callable[[np.random.Generator], np.ndarray]


def normal(*shape: int, scale: float = 1.0, offset: float = 0.0) -> Maker:
    return lambda rng: np.asarray(offset + scale * rng.standard_normal(shape))


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Maker:
    return lambda rng: np.asarray(rng.uniform(low, high, shape))


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


def probabilities(*shape: int, axis: int) -> Maker:
    def make(rng: np.random.Generator) -> np.ndarray:
        weights = rng.uniform(0.1, 1.0, shape)
        return weights / weights.sum(axis=axis, keepdims=True)

    return make


def labels(classes: int, *shape: int, ignored: int | None = None) -> Maker:
    """Class indices, about a third of them `ignored` if given."""

    def make(rng: np.random.Generator) -> np.ndarray:
        target = np.asarray(rng.integers(0, classes, shape))
        if ignored is None:
            return target
        return np.where(rng.random(shape) < 0.35, ignored, target)

    return make
