"""Weights of examples: those of the user, and those of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import column_or_1d

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError


def sample_weights(estimator: str, given: Any, examples: int) -> Array | None:
    """float64 (N,) as given, one number for all; None where none are given.

    Raises ShapeError for another shape, ArgumentError for values that are not finite or all zero.
    """
    if given is None:
        return None
    weights = np.asarray(given, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(examples, float(weights))
    elif weights.ndim > 1:
        raise ShapeError(
            f"{estimator}: sample_weight has shape {weights.shape}; allowed: 1D or scalar"
        )
    weights = column_or_1d(weights)
    if len(weights) != examples:
        raise ShapeError(
            f"{estimator}: sample_weight has shape {weights.shape}; allowed: ({examples},), one "
            "for every example"
        )
    if not np.isfinite(weights).all():
        raise ArgumentError(
            f"{estimator}: sample_weight has a value that is not finite; allowed: finite numbers"
        )
    if not weights.any():
        raise ArgumentError(
            f"{estimator}: every sample_weight is zero; allowed: at least one that is not zero"
        )
    return weights


def with_class_weights(weights: Array | None, class_weight: Any, y: Array) -> Array | None:
    """The weights of the examples times those of their classes y, as they were given."""
    if class_weight is None:
        return weights
    of_classes: Array = compute_sample_weight(class_weight, y)
    return of_classes if weights is None else weights * of_classes
