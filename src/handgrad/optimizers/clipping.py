"""Clipping: gradients of a runaway step made smaller, their direction kept."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.layers.flat import FlatArrays


def global_norm(gradients: Mapping[str, Array]) -> float:
    """√Σ g² over every value of every array, summed in float64 and in one fixed order."""
    arrays = [gradients.buffer] if type(gradients) is FlatArrays else gradients.values()
    return math.sqrt(sum(float(np.square(array, dtype=np.float64).sum()) for array in arrays))


def clip_by_global_norm(gradients: Mapping[str, Array], max_norm: float) -> float:
    """Scale all gradients, in place, by min(1, max_norm/(norm + 1e-6)); returns the norm before.

    The same as PyTorch's `clip_grad_norm_`. A norm that is infinite or NaN leaves NaN behind, for
    the caller to see. Raises ArgumentError for a negative `max_norm`.
    """
    if not max_norm >= 0:
        raise ArgumentError(f"clip_by_global_norm: max_norm is {max_norm}; allowed: 0 or more")
    norm = global_norm(gradients)
    factor = max_norm / (norm + 1e-6)
    if not factor >= 1:
        arrays = [gradients.buffer] if type(gradients) is FlatArrays else gradients.values()
        for array in arrays:
            array *= factor
    return norm
