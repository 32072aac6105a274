"""An embedding looks up a row of a table for every token.

y[n, t] = W[tokens[n, t]]. The same row is often looked up more than once.
Tokens are whole numbers and have no gradient.

Shapes: tokens (N, T), weight, dweight (V, D), y, dy (N, T, D).
"""

import numpy as np


def forward(
    tokens: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return y, and what backward needs."""
    y = weight[tokens]
    return y, (tokens, weight)


def backward(dy: np.ndarray, cache: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return dweight."""
    tokens, weight = cache
    dweight = np.zeros_like(weight)
    np.add.at(dweight, tokens, dy)
    return dweight


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.integers(0, 5, (3, 4)), rng.standard_normal((5, 2))


HINTS = (
    "A row that no token looks up changes nothing: its gradient is 0. Start from zeros like "
    "weight.",
    "A row that is looked up three times gets the sum of three rows of dy.",
    "dweight[tokens] += dy adds once to a row however often it stands in tokens. "
    "np.add.at(dweight, tokens, dy) adds every time.",
)
OP = "embedding"
