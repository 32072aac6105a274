# mypy: ignore-errors
"""Functions that the formulas of several documents need."""

from __future__ import annotations

import numpy as np


def softmax(z):
    powers = np.exp(z - z.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def no_backward(dy, cache):
    """Forward does not come that far."""
