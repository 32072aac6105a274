"""How the correlation of two examples changes from layer to layer, and which variances keep it.

In a deep network of dense layers the covariances go towards a fixed point. χ, the slope of the
correlation there, is also what a gradient is multiplied by at each layer: below 1 all examples
become alike and gradients vanish, above 1 alike examples come apart and gradients explode; 1 lets
signals through. 1/|ln χ| is the number of layers in which the difference falls or grows by e.

Source: Poole et al., Exponential expressivity in deep neural networks through transient chaos
(2016); Schoenholz et al., Deep information propagation (2017).
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.ops.activation import v_transform

#: Layers after which a variance that still changes has no fixed point, and how close it has to be.
_MOST_LAYERS: Final = 2000
_CLOSE: Final = 1e-12
#: Variances beyond these count as exploded or vanished.
_LARGEST, _SMALLEST = 1e12, 1e-100
#: Between which weight variances the critical one is looked for, and how often the interval is
#: halved.
_RANGE: Final = (1e-3, 1e3)
_HALVINGS: Final = 60


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
    activation: str, weight_variance: float, bias_variance: float = 0.0, **options: Any
) -> FixedPoint:
    """The fixed point of variances from 1 on. Raises ArgumentError for an unknown activation."""
    _check(weight_variance, bias_variance)
    k = 1.0
    for _ in range(_MOST_LAYERS):
        after = weight_variance * float(v_transform(activation, k, k, k, **options)) + bias_variance
        if not _SMALLEST < after < _LARGEST:
            k = after
            break
        if abs(after - k) <= _CLOSE * k:
            k = after
            break
        k = after
    at = min(max(k, _SMALLEST), _LARGEST)
    slope = float(v_transform(activation, at, at, at, derivative=True, **options))
    return FixedPoint(k, weight_variance * slope)


def critical_weight_variance(activation: str, bias_variance: float = 0.0, **options: Any) -> float:
    """The variance of a weight times its number of columns at which χ is 1.

    Raises ArgumentError where none between 0.001 and 1000 has it.
    """
    low, high = _RANGE
    below, above = (fixed_point(activation, each, bias_variance, **options).chi for each in _RANGE)
    if not below < 1.0 < above:
        raise ArgumentError(
            f"limits: χ of {activation} goes from {below:.3g} to {above:.3g}; allowed: functions "
            "and bias variances for which it passes 1"
        )
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if fixed_point(activation, middle, bias_variance, **options).chi < 1.0:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)


class Signals(NamedTuple):
    """What becomes of two examples at every layer: their variance and their correlation."""

    variance: Array
    correlation: Array


def signals(
    activation: str,
    weight_variance: float,
    bias_variance: float = 0.0,
    *,
    depth: int = 50,
    start: Array | float = 0.5,
    **options: Any,
) -> Signals:
    """The variance (depth + 1,) and correlation (depth + 1, *shape of start) layer by layer.

    The examples start with variance 1 and correlation `start`. What follows where the variance
    vanishes or explodes is NaN.
    """
    _check(weight_variance, bias_variance)
    if depth < 0:
        raise ArgumentError(f"limits: depth is {depth}; allowed: 0 or more")
    covariance = np.asarray(start, dtype=np.float64)
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
    named = {"weight_variance": weight_variance, "bias_variance": bias_variance}
    for name, value in named.items():
        if not (math.isfinite(value) and value >= 0.0):
            raise ArgumentError(f"limits: {name} is {value}; allowed: 0 or more, finite")
