"""The two generated sets that Careddu's networks are trained on.

Their recipe leaves some numbers open; those chosen here are marked "here" and make about half of
the series positive. Every part is drawn from a stream of its own, so that one does not change with
the size of another.

Source: Careddu, Custom Neural Networks (undated), the software that goes with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset
from handgrad.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

STEPS: Final = 100
#: Entries of a vector above it count as large.
LARGE: Final = 1e-3


def series(seed: int = 0, train: int = 1024, validation: int = 100, test: int = 1024) -> Dataset:
    """Series (N, 100, 8) of two classes: see `draw_series`.

    The source has a training and a validation part; the test part is added here.
    Raises ArgumentError for a count below 1.
    """
    return _dataset("series", draw_series, ("0", "1"), seed, train, validation, test)


def vectors(seed: int = 0, train: int = 1024, validation: int = 100, test: int = 1024) -> Dataset:
    """Arrays (N, 4, 16) of two classes: see `draw_vectors`. Sizes as in `series`, from here."""
    return _dataset(
        "vectors", draw_vectors, ("few large", "mostly large"), seed, train, validation, test
    )


def draw_series(
    count: int, rng: np.random.Generator
) -> tuple[Float[Array, "N T C"], Int[Array, "N"]]:
    """Series of 100 steps with eight channels, and their labels; t goes from 0 to 99, ε is N(0, 1).

    x₀  AR(1): x₀[t] = 0.9 x₀[t−1] + 0.3 ε, from its stationary distribution (numbers from here)
    x₁  seasonal: a sin(2πt/p + φ), a from 0.5 to 1.5, p from 10 to 30, φ from 0 to 2π (here)
    x₂  trend: b t/100 with b from N(0, 1) (here)
    x₃  interaction: x₀ x₁
    x₄  noise: ε
    x₅  a spike of height 0 to 1.8 at one step, on 0.05 ε (here)
    x₆  regime: −1 or 1, changing with probability 0.05 at each step, and 0.1 ε (here)
    x₇  the same regime's noise: 0.2 ε in the first, ε in the second (here)

    The label is 1 where mean(x₀[40:]) + 0.5 std(x₃) + 0.8 max(x₅) > 1, with the population's std.
    """
    t = np.arange(STEPS)
    x = rng.normal(size=(8, count, STEPS))

    decay, scale = 0.9, 0.3
    x[0, :, 0] *= scale / np.sqrt(1 - decay**2)
    for step in range(1, STEPS):
        x[0, :, step] = decay * x[0, :, step - 1] + scale * x[0, :, step]
    amplitude, period, phase = (
        rng.uniform(low, high, (count, 1)) for low, high in ((0.5, 1.5), (10, 30), (0, 2 * np.pi))
    )
    x[1] = amplitude * np.sin(2 * np.pi * t / period + phase)
    x[2] = rng.normal(size=(count, 1)) * t / STEPS
    x[3] = x[0] * x[1]
    x[5] *= 0.05
    x[5, np.arange(count), rng.integers(STEPS, size=count)] += rng.uniform(0, 1.8, count)
    changes = (rng.random((count, STEPS)) < 0.05).cumsum(axis=1)
    regime = (changes + rng.integers(2, size=(count, 1))) % 2
    x[6] = 2 * regime - 1 + 0.1 * x[6]
    x[7] *= np.where(regime == 0, 0.2, 1.0)

    score = x[0, :, 40:].mean(axis=1) + 0.5 * x[3].std(axis=1) + 0.8 * x[5].max(axis=1)
    return x.transpose(1, 2, 0).astype(np.float32), (score > 1).astype(np.int64)


def draw_vectors(
    count: int, rng: np.random.Generator
) -> tuple[Float[Array, "N 4 16"], Int[Array, "N"]]:
    """Arrays of N(0, 1); label 1 where more than half of the 64 entries exceed 0.001, else 0."""
    x = rng.normal(size=(count, 4, 16)).astype(np.float32)
    large = np.count_nonzero(x > LARGE, axis=(1, 2))
    return x, (large > x[0].size // 2).astype(np.int64)


def _dataset(
    name: str,
    draw: Callable[[int, np.random.Generator], tuple[Array, Array]],
    classes: tuple[str, ...],
    seed: int,
    *counts: int,
) -> Dataset:
    parts = []
    for i, (part, count) in enumerate(zip(("train", "validation", "test"), counts, strict=True)):
        if count < 1:
            raise ArgumentError(f"{name}: {part} is {count}; allowed: an integer from 1")
        parts.append(draw(count, np.random.default_rng((seed, i))))
    (x_train, y_train), (x_validation, y_validation), (x_test, y_test) = parts
    return Dataset(name, x_train, y_train, x_test, y_test, classes, x_validation, y_validation)
