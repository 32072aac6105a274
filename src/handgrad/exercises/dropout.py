"""Dropout switches values off, and scales up those that stay.

y = keep · x / (1 − p): keep is an array of True and False that was drawn
before, p the share of values that are switched off. It is a constant and has
no gradient.

Shapes: x, keep, y, dy, dx all the same, such as (6, 7). Here p = 1/4.
"""

import numpy as np

P = 0.25


def forward(x: np.ndarray, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return y, and what backward needs."""
    y = np.where(keep, x / (1 - P), 0)
    return y, keep


def backward(dy: np.ndarray, cache: np.ndarray) -> np.ndarray:
    """Return dx."""
    keep = cache
    dx = np.where(keep, dy / (1 - P), 0)
    return dx


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.standard_normal((6, 7)), rng.random((6, 7)) >= P


HINTS = (
    "A value that was switched off changes nothing of y: its gradient is 0.",
    "A value that stays was multiplied by a constant, and the slope of c·x is c.",
    "dx is dy where keep is True, divided by the same 1 − p as in forward, and 0 elsewhere.",
)
OP = "dropout"
