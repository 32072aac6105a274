"""A function along a line through a point, and pairs of steps on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from handgrad.arrays import Array

Point = Mapping[str, Array]
Scalar = Callable[[dict[str, Array]], float]


class Difference(NamedTuple):
    """f at one step ahead and one behind: their slope, and how the two one-sided slopes differ."""

    step: float
    slope: float
    bend: float
    size: float


class LineRestriction:
    """φ(t) = f(point + t direction).

    `length` is the t that moves some array of the point by about its own size, or by 1 if all are
    0; `longest` the t that does so for every array.
    """

    def __init__(
        self,
        f: Scalar,
        point: Point,
        direction: Mapping[str, Array],
        middle: float | None = None,
        length: float | None = None,
    ) -> None:
        self.f = f
        self.point = dict(point)
        self.direction = {
            name: np.asarray(array, dtype=np.float64)
            for name, array in direction.items()
            if np.any(array)
        }
        self.middle = self(0.0) if middle is None else middle
        lengths = self._lengths()
        self.length = length or min(lengths, default=self._largest_step())
        self.longest = max(lengths, default=0.0)

    def __call__(self, t: float) -> float:
        moved = dict(self.point)
        if t != 0.0:
            for name, array in self.direction.items():
                moved[name] = np.asarray(self.point[name] + t * array)
        with np.errstate(all="ignore"):
            return float(self.f(moved))

    def _lengths(self) -> list[float]:
        """|x|/|d| of every array, root mean squares over what moves, if x is not 0."""
        lengths = []
        for name, array in self.direction.items():
            x = np.asarray(self.point[name], dtype=np.float64)
            size = root_mean_square(x[(array != 0) & np.isfinite(x)])
            if size > 0:
                lengths.append(size / root_mean_square(array[array != 0]))
        return lengths

    def _largest_step(self) -> float:
        """The step that moves some element by 1."""
        return 1.0 / max(float(np.max(np.abs(array))) for array in self.direction.values())

    def with_random_signs(self) -> LineRestriction:
        """A line through the same point whose derivative is of the same size, by expectation."""
        rng = np.random.default_rng(0)
        signs = {
            name: rng.choice((-1.0, 1.0), array.shape) for name, array in self.direction.items()
        }
        turned = {name: signs[name] * array for name, array in self.direction.items()}
        return LineRestriction(self.f, self.point, turned, self.middle, self.length)

    def difference(self, step: float) -> Difference:
        ahead, behind = self(step), self(-step)
        slope = (ahead - behind) / (2.0 * step)
        bend = ((ahead - self.middle) - (self.middle - behind)) / step
        return Difference(step, slope, bend, max(abs(ahead), abs(self.middle), abs(behind)))


def root_mean_square(x: Array) -> float:
    return float(np.sqrt(np.mean(x * x))) if x.size else 0.0
