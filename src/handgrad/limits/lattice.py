"""Points of a rank-1 lattice in the place of draws of normal values, for many dimensions.

Point i has the coordinates i z_k/n mod 1, which the tent function 1 − |2u − 1| and the normal
quantile make values; n is prime. Each z_k is the one that makes the worst error of a smooth
periodic integrand least, given those before, with a weight of 1/k² for dimension k. With i and z as
powers of a generator modulo n that search is a circular convolution. Functions that are smooth are
integrated with an error of about 1/n, in place of the 1/√n of independent draws.

Source: Nuyens, Cools, Fast algorithms for component-by-component construction of rank-1 lattice
rules in shift-invariant reproducing kernel Hilbert spaces (2006); Dick, Nuyens, Pillichshammer,
Lattice rules for nonperiodic smooth integrands (2014), for the tent function.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from threading import Lock
from typing import Final

import numpy as np

from handgrad.arrays import Array

#: The fewest points: a smaller prime has no choice of z.
_FEWEST: Final = 5


class Lattice:
    """At most `count` points, of as many dimensions as are asked for, shifted by `seed`."""

    def __init__(self, count: int, seed: int) -> None:
        self.count = n = _prime(max(count, _FEWEST))
        self._rng = np.random.default_rng(seed)
        self._lock = Lock()
        self._columns: list[Array] = []
        powers = np.empty((n - 1) // 2, dtype=np.int64)
        power, generator = 1, _generator(n)
        for k in range(len(powers)):
            powers[k] = min(power, n - power)  # z and n − z make the same points, in mirror image
            power = power * generator % n
        self._powers = powers
        x = powers / n
        self._kernel = 2.0 * math.pi**2 * (x * x - x + 1.0 / 6.0)
        self._transformed = np.fft.rfft(self._kernel)
        self._error = np.ones(len(powers))
        # A quarter makes of the tent function's values the midpoints of n equal parts.
        tent = 1.0 - np.abs(2.0 * (np.arange(n) + 0.25) / n - 1.0)
        quantile = NormalDist().inv_cdf
        values = np.array([quantile(u) for u in tent])
        self._values = values / math.sqrt(float(np.mean(values * values)))

    def normals(self, dimension: int) -> Array:
        """Standard normal values, (count,), of a dimension from 0."""
        with self._lock:
            while len(self._columns) <= dimension:
                shift = int(self._rng.integers(self.count))
                places = np.arange(self.count, dtype=np.int64) * self._next() + shift
                self._columns.append(self._values[places % self.count])
            return self._columns[dimension]

    def _next(self) -> int:
        """The z of one more dimension."""
        number = len(self._columns)
        found = np.fft.irfft(self._transformed * np.fft.rfft(self._error), len(self._error))
        best = int(np.argmin(found)) if number else 0
        turned = np.roll(self._kernel[::-1], best + 1)
        self._error *= 1.0 + turned / (number + 1) ** 2
        self._error /= self._error.mean()
        return int(self._powers[best])


def _prime(most: int) -> int:
    """The largest prime up to `most`."""
    return next(n for n in range(most, 1, -1) if not _divisors(n))


def _divisors(n: int) -> list[int]:
    """The divisors from 2 to the root of n."""
    return [d for d in range(2, math.isqrt(n) + 1) if n % d == 0]


def _generator(prime: int) -> int:
    """The least number whose powers are all numbers below the prime."""
    small = _divisors(prime - 1)
    divisors = {*small, *((prime - 1) // d for d in small)}
    return next(g for g in range(2, prime) if all(pow(g, d, prime) != 1 for d in divisors))
