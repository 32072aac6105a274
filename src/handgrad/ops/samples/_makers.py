"""Arrays by their kind and shape, and random sizes and settings."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np

from handgrad.ops.samples._table import Maker

Choice = TypeVar("Choice")

_LARGER_SIZES: Final = (17, 23, 31)


def normal(*shape: int, scale: float = 1.0, offset: float = 0.0) -> Maker:
    return lambda rng: np.asarray(offset + scale * rng.standard_normal(shape))


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Maker:
    return lambda rng: np.asarray(rng.uniform(low, high, shape))


def fixed(values: Any, dtype: Any = np.float64) -> Maker:
    """These values every time; floats unless another dtype is given."""
    return lambda rng: np.array(values, dtype=dtype)


def extreme(*shape: int) -> Maker:
    """Magnitudes from 1e−4 to 1e4 of either sign; their squares fit into float32."""

    def make(rng: np.random.Generator) -> np.ndarray:
        return np.asarray(rng.choice((-1.0, 1.0), shape) * 10.0 ** rng.uniform(-4.0, 4.0, shape))

    return make


def away_from_zero(*shape: int, margin: float = 0.1) -> Maker:
    """Normal values moved `margin` away from 0, where ReLU has its kink."""

    def make(rng: np.random.Generator) -> np.ndarray:
        values = np.asarray(rng.standard_normal(shape))
        return np.asarray(values + np.copysign(margin, values))

    return make


def distinct(*shape: int) -> Maker:
    """Values between −3 and 3 in random order, no two close to a tie."""

    def make(rng: np.random.Generator) -> np.ndarray:
        count = int(np.prod(shape))
        ranks = rng.permutation(count) + rng.uniform(0.2, 0.8, count)
        return np.asarray(6.0 * ranks / max(count, 1) - 3.0).reshape(shape)

    return make


def few_values(*shape: int, low: int = -1) -> Maker:
    """Whole numbers from `low` to 1, as floats: ties everywhere."""
    return lambda rng: rng.integers(low, 2, shape).astype(np.float64)


def with_minus_infinity(mask: Any) -> Maker:
    """Normal scores in the shape of the mask, −∞ where it is 1."""

    def make(rng: np.random.Generator) -> np.ndarray:
        masked = np.array(mask, dtype=bool)
        return np.where(masked, -np.inf, rng.standard_normal(masked.shape))

    return make


def labels(classes: int, *shape: int, ignored: int | None = None) -> Maker:
    """Class indices or tokens, about a third of them `ignored` if given."""

    def make(rng: np.random.Generator) -> np.ndarray:
        found = np.asarray(rng.integers(0, classes, shape))
        return found if ignored is None else np.where(rng.random(shape) < 0.35, ignored, found)

    return make


def booleans(*shape: int, share: float, some: bool = True) -> Maker:
    """True in about this share; with `some` also in the first position along the last axis."""

    def make(rng: np.random.Generator) -> np.ndarray:
        found = np.asarray(rng.random(shape) < share)
        if some:
            found[..., 0] = True
        return found

    return make


def probabilities(*shape: int, axis: int) -> Maker:
    def make(rng: np.random.Generator) -> np.ndarray:
        weights = rng.uniform(0.1, 1.0, shape)
        return np.asarray(weights / weights.sum(axis=axis, keepdims=True))

    return make


def pick(rng: np.random.Generator, *choices: Choice) -> Choice:
    return choices[int(rng.integers(len(choices)))]


def between(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return int(rng.integers(low, high + 1))


def random_sizes(rng: np.random.Generator, count: int, high: int = 13) -> tuple[int, ...]:
    """Lengths from 1 to `high`; one time in eight one of them is larger."""
    found = [between(rng, 1, high) for _ in range(count)]
    if found and rng.random() < 1 / 8:
        found[between(rng, 0, count - 1)] = pick(rng, *_LARGER_SIZES)
    return tuple(found)


def random_shape(rng: np.random.Generator, least: int, most: int) -> tuple[int, ...]:
    """From `least` to `most` axes, shorter ones where there are more."""
    axes = between(rng, least, most)
    return random_sizes(rng, axes, high=13 if axes < 3 else 4)
