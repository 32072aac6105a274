"""Clipping: gradients of a runaway step made smaller, their direction kept."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import get_engine
from handgrad.errors import ArgumentError
from handgrad.layers.flat import FlatArrays
from handgrad.optimizers.base import kernel_module


def global_norm(gradients: Mapping[str, Array]) -> float:
    """√Σ g² over every value of every array, summed in float64 and in one fixed order."""
    arrays = [gradients.buffer] if type(gradients) is FlatArrays else gradients.values()
    return math.sqrt(sum(_sum_of_squares(array) for array in arrays))


def _sum_of_squares(array: Array) -> float:
    """Σ x² in float64, by the kernel where the engine and the array allow it."""
    kernel = None if get_engine() == "reference" else kernel_module("clipping")
    if kernel is not None and _plain(array):
        return float(kernel.sum_of_squares(array))
    return float(np.square(array, dtype=np.float64).sum())


def _plain(array: Array) -> bool:
    """Return whether the kernel can read it as it lies."""
    dtype, flags = array.dtype, array.flags
    return bool(dtype.char in "fd" and dtype.isnative and flags.c_contiguous and flags.aligned)


def clipping_factor(norm: float, max_norm: float) -> float:
    """min(1, max_norm/(norm + 1e-6)); NaN or 0 for a norm that is not finite.

    `Optimizer.step` takes it as `scale`. Raises ArgumentError for a negative `max_norm`.
    """
    if not max_norm >= 0:
        raise ArgumentError(f"clipping: max_norm is {max_norm}; allowed: 0 or more")
    factor = max_norm / (norm + 1e-6)
    return 1.0 if factor >= 1 else factor


def clip_by_global_norm(gradients: Mapping[str, Array], max_norm: float) -> float:
    """Scale all gradients, in place, by min(1, max_norm/(norm + 1e-6)); returns the norm before.

    The same as PyTorch's `clip_grad_norm_`. A norm that is infinite or NaN leaves NaN behind, for
    the caller to see. Raises ArgumentError for a negative `max_norm`.
    """
    norm = global_norm(gradients)
    factor = clipping_factor(norm, max_norm)
    if factor != 1:
        arrays = [gradients.buffer] if type(gradients) is FlatArrays else gradients.values()
        for array in arrays:
            array *= factor
    return norm
