"""The correlation of two examples from layer to layer, and the variances that keep it.

In a deep network of dense layers the covariances go towards a fixed point. χ, the slope of the
correlation there, is also what a gradient is multiplied by at each layer: below 1 all examples
become alike and gradients vanish, above 1 alike examples come apart and gradients explode; 1 lets
signals through. 1/|ln χ| is the number of layers in which the difference falls or grows by e.

Source: Poole et al., Exponential expressivity in deep neural networks through transient chaos
(2016); Schoenholz et al., Deep information propagation (2017).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple, TypedDict, Unpack

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.limits.variances import check_variance
from handgrad.ops.activation import v_transform

#: Variances beyond these count as exploded or vanished.
_LARGEST, _SMALLEST = 1e12, 1e-100
#: Variances that are looked at for a fixed point, below and above the first one of 1.
_BELOW: Final = np.geomspace(1.0, _SMALLEST, 2001)
_ABOVE: Final = np.geomspace(1.0, _LARGEST, 401)
#: A variance that changes by less than this part of it stays, but for rounding.
_STAYS: Final = 4e-16
#: Between which weight variances the critical one is looked for, and how often an interval is
#: halved.
_RANGE: Final = (1e-3, 1e3)
_HALVINGS: Final = 60
#: The distance from 1 that χ may have at a critical variance, and beside it, at this part of it.
_NEAR: Final = 1e-2
_BESIDE: Final = 1e-6


class ActivationOptions(TypedDict, total=False):
    """The settings of activations that have any."""

    negative_slope: float
    approximate: str


class FixedPoint(NamedTuple):
    """The variance of a layer's values far down, and the slope χ there; ∞ or 0 where it explodes
    or vanishes."""

    variance: float
    chi: float

    @property
    def depth_scale(self) -> float:
        """The number of layers in which a difference changes by a factor e; ∞ at χ = 1."""
        rate = abs(math.log(self.chi)) if self.chi > 0.0 else math.inf
        return math.inf if rate == 0.0 else 1.0 / rate


def fixed_point(
    activation: str,
    weight_variance: float,
    bias_variance: float = 0.0,
    **options: Unpack[ActivationOptions],
) -> FixedPoint:
    """The variance that layers come to from 1 on: 0 where it vanishes, ∞ if it explodes.

    Raises ArgumentError for an unknown activation.
    """
    _check(weight_variance, bias_variance)

    def growth(k: Array) -> Array:
        """By which part a variance changes in a layer; 0 where that is rounding."""
        after = weight_variance * v_transform(activation, k, k, k, **options) + bias_variance
        change = after / k - 1.0
        return np.where(np.abs(change) <= _STAYS, 0.0, change)

    first = float(growth(np.ones(1))[0])
    way = _BELOW if first < 0.0 else _ABOVE
    turned = np.flatnonzero(np.sign(growth(way)) != np.sign(first)) if first else [0]
    if not len(turned):
        k = 0.0 if first < 0.0 else math.inf
    else:
        at = int(turned[0])
        one, other = float(way[max(at - 1, 0)]), float(way[at])
        for _ in range(_HALVINGS):
            middle = math.sqrt(one * other)
            if np.sign(growth(np.full(1, middle))[0]) == np.sign(first):
                one = middle
            else:
                other = middle
        k = other
    near = min(max(k, _SMALLEST), _LARGEST)
    slope = float(v_transform(activation, near, near, near, derivative=True, **options))
    return FixedPoint(k, weight_variance * slope)


def critical_weight_variance(
    activation: str, bias_variance: float = 0.0, **options: Unpack[ActivationOptions]
) -> float:
    """The variance of a weight times its number of columns at which χ is 1.

    Raises ArgumentError where none between 0.001 and 1000 has it: for GELU and SiLU χ jumps over 1,
    from variances that vanish to such that explode.
    """

    def chi(variance: float) -> float:
        return fixed_point(activation, variance, bias_variance, **options).chi

    low, high = _RANGE
    if not chi(low) < 1.0 < chi(high):
        raise ArgumentError(
            f"limits: χ of {activation} goes from {chi(low):.3g} to {chi(high):.3g}; allowed: "
            "functions and bias variances for which it passes 1"
        )
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if chi(middle) < 1.0 else (low, middle)
    found = math.sqrt(low * high)
    below, above = chi(found * (1.0 - _BESIDE)), chi(found * (1.0 + _BESIDE))
    if max(abs(below - 1.0), abs(above - 1.0)) > _NEAR:
        raise ArgumentError(
            f"limits: χ of {activation} jumps from {below:.3g} to {above:.3g} at the weight "
            f"variance {found:.4g}; allowed: functions for which it is 1 somewhere"
        )
    return found


class Signals(NamedTuple):
    """The variance of two examples at every layer, and their correlation."""

    variance: Array
    correlation: Array


def signals(
    activation: str,
    weight_variance: float,
    bias_variance: float = 0.0,
    *,
    depth: int = 50,
    start: Array | float = 0.5,
    **options: Unpack[ActivationOptions],
) -> Signals:
    """The variance (depth + 1,) and correlation (depth + 1, *shape of start) layer by layer.

    The examples start with variance 1 and correlation `start`. What follows where the variance
    vanishes or explodes is NaN.
    """
    _check(weight_variance, bias_variance)
    if not isinstance(depth, int) or depth < 0:
        raise ArgumentError(f"limits: depth is {depth!r}; allowed: a whole number from 0")
    covariance = np.asarray(start, dtype=np.float64)
    if not np.all(np.abs(covariance) <= 1.0):
        raise ArgumentError("limits: start has a correlation beyond ±1; allowed: -1 to 1")
    variance = 1.0
    found = Signals(np.full(depth + 1, np.nan), np.full((depth + 1, *covariance.shape), np.nan))
    for layer in range(depth + 1):
        if not _SMALLEST < variance < _LARGEST:
            break
        found.variance[layer] = variance
        found.correlation[layer] = covariance / variance
        covariance = v_transform(activation, covariance, variance, variance, **options)
        covariance = weight_variance * covariance + bias_variance
        after = float(v_transform(activation, variance, variance, variance, **options))
        variance = weight_variance * after + bias_variance
    return found


def _check(weight_variance: float, bias_variance: float) -> None:
    check_variance("weight_variance", weight_variance)
    check_variance("bias_variance", bias_variance)
