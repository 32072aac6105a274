"""Variances and covariances of two Gaussian values, as V-transforms take them.

The V-transform of a function f is E[f(z₁) f(z₂)] for z₁ and z₂ with mean 0, variances k₁₁ and k₂₂
and covariance k₁₂. It takes the covariances of one layer of an infinitely wide network to those of
the next.

Source: Williams, Computing with infinite networks (1997); Lee et al., Deep neural networks as
Gaussian processes (2018); Yang, Tensor programs I: wide feedforward or recurrent neural networks of
any architecture are Gaussian processes (2019).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]


def variances(k11: ArrayLike) -> Values:
    """k₁₁ in float64, where a rounding may have left it below 0 as 0."""
    return np.asarray(np.maximum(np.asarray(k11, dtype=np.float64), 0.0))


def bounded(k12: ArrayLike, k11: Values, k22: Values) -> tuple[Values, Values]:
    """k₁₂ within ±√(k₁₁ k₂₂), beyond which a rounding may have put it, and that bound.

    Both have the shape of all three together. The root is taken of the product: for k₁₁ = k₂₂ that
    is k₁₁ to the last bit, so that equal inputs have a correlation of exactly 1.
    """
    k12 = np.asarray(k12)
    most = np.empty(np.broadcast_shapes(k12.shape, k11.shape, k22.shape))
    np.multiply(k11, k22, out=most)
    np.sqrt(most, out=most)
    within = np.negative(most, out=np.empty_like(most))
    np.maximum(within, k12, out=within)
    np.minimum(within, most, out=within)
    return within, most


def determinant(k12: Values, most: Values) -> Values:
    """k₁₁ k₂₂ − k₁₂² of what `bounded` gives: a product of two numbers from 0, without the
    cancellation of a difference of squares near a correlation of ±1."""
    value = np.subtract(most, k12, out=np.empty_like(most))
    value *= most + k12
    return value
