"""Positions of steps as numbers: angles for rotations, sines and cosines to add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def angles(
    length: int,
    features: int,
    *,
    offset: int = 0,
    base: float = 10000.0,
    frequencies: tuple[float, ...] | None = None,
) -> Float[np.ndarray, "T half"]:
    """θ[t, i] = (offset + t) ω_i with ω_i = base^(−2i/d), or frequencies[i], in float64."""
    if length == 0 or features == 0:  # however long the other one is
        return np.zeros((length, features // 2))
    frequency = base ** (-2.0 * np.arange(features // 2) / features)
    if frequencies is not None:
        frequency = np.asarray(frequencies, dtype=np.float64)
    return np.outer(np.arange(offset, offset + length), frequency)


def table(
    length: int, features: int, *, offset: int = 0, base: float = 10000.0
) -> Float[np.ndarray, "T D"]:
    """P[t, 2i] = sin(p base^(−2i/D)) and P[t, 2i+1] = cos(p base^(−2i/D)) with p = offset + t.

    In float64; with an odd D the last column is a sine.
    """
    if length == 0 or features == 0:  # however long the other one is
        return np.zeros((length, features))
    frequency = base ** (-2.0 * np.arange((features + features % 2) // 2) / features)
    angle = np.outer(np.arange(offset, offset + length), frequency)
    found = np.empty((length, features))
    found[:, 0::2] = np.sin(angle)
    found[:, 1::2] = np.cos(angle[:, : features // 2])
    return found
