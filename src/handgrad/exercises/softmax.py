"""Softmax makes probabilities of the scores in each row.

y_i = exp(x_i) / Σ_j exp(x_j). The largest score is taken off first, so that no
power overflows; that changes nothing of y. Each y_i depends on every score of
its row.

Shapes: x, y, dy, dx (N, C).
"""

import numpy as np


def forward(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return y, and what backward needs."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    y = powers / powers.sum(axis=-1, keepdims=True)
    return y, y


def backward(dy: np.ndarray, cache: np.ndarray) -> np.ndarray:
    """Return dx."""
    y = cache
    dx: np.ndarray = y * (dy - (y * dy).sum(axis=-1, keepdims=True))
    return dx


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return (rng.standard_normal((4, 5)),)


HINTS = (
    "∂y_i/∂x_j is y_i (1 − y_i) for i = j, and −y_i y_j otherwise.",
    "dx_j = Σ_i dy_i ∂y_i/∂x_j. Put the derivatives in, and draw y_j out of the sum.",
    "dx_j = y_j (dy_j − Σ_i y_i dy_i): the sum runs over the row, and keeps its axis.",
)
OP = "softmax"
