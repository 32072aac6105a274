"""The distance of an image from those of a training part: from the nearest of a few means."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError

#: Means that stand for the training part, and the sides of the images that they are compared in.
_MEANS: Final = 32
_SIDE: Final = 8
_ROUNDS: Final = 15
#: The part of the training images that is as near as the limit.
_USUAL: Final = 0.999


class Likeness:
    """Directions of the commonest images, and the distance within which nearly all lie.

    Images are averaged over blocks to at most 8 × 8 and taken as vectors of length 1, so that
    thicker strokes or another contrast change little; the distance is 1 − the cosine.
    `means` (K, D) in numbers of two decimals; `limit` a distance.
    """

    def __init__(self, means: Any, limit: float) -> None:
        self.means = np.array(means, np.float64)
        self.limit = limit
        if self.means.ndim != 2 or not np.isfinite(self.means).all() or not limit >= 0:
            raise ArgumentError("likeness: means are no table of numbers; allowed: (K, D)")

    @classmethod
    def of(cls, x: Array) -> Likeness:
        """The likeness to images x (N, C, H, W): spherical k-means from examples far apart."""
        vectors = _vectors(x)
        means = vectors[np.linspace(0, len(vectors) - 1, min(len(vectors), _MEANS)).astype(int)]
        for _ in range(_ROUNDS):
            nearest = (vectors @ means.T).argmax(axis=1)
            sums = np.zeros_like(means)
            np.add.at(sums, nearest, vectors)
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
            means = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), means)
        means = means.round(2)
        return cls(means, round(float(np.quantile(_distances(vectors, means), _USUAL)), 4))

    def distance(self, x: Array) -> float:
        """The smallest distance of images x (V, C, H, W) from a mean."""
        vectors = _vectors(x)
        if vectors.shape[1] != self.means.shape[1]:
            raise ArgumentError(
                f"likeness: images of {vectors.shape[1]} values; allowed: {self.means.shape[1]}"
            )
        return float(_distances(vectors, self.means).min())


def _distances(vectors: Array, means: Array) -> Array:
    lengths = np.maximum(np.linalg.norm(means, axis=1), 1e-12)
    nearest: Array = 1 - (vectors @ means.T / lengths).max(axis=1)
    return nearest


def _vectors(x: Array) -> Array:
    """Means over blocks, as rows of length 1."""
    blocks = x.astype(np.float64)
    for axis in (2, 3):
        starts = np.arange(0, x.shape[axis], math.ceil(x.shape[axis] / _SIDE))
        counts = np.diff([*starts, x.shape[axis]])
        shape = [1] * 4
        shape[axis] = len(starts)
        blocks = np.add.reduceat(blocks, starts, axis=axis) / counts.reshape(shape)
    vectors = blocks.reshape(len(x), -1)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
