"""ReLU keeps what is positive and puts 0 for the rest.

y = max(x, 0), value by value. A value of y depends on one value of x alone, so
the gradient needs no sum: it is dy times the slope of the function at x.

Shapes: x, y, dy, dx all the same, such as (4, 5).
"""

import numpy as np


def forward(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return y, and what backward needs."""
    y = np.maximum(x, 0)
    return y, x


def backward(dy: np.ndarray, cache: np.ndarray) -> np.ndarray:
    """Return dx."""
    x = cache
    dx = dy * (x > 0)
    return dx


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return (rng.standard_normal((4, 5)),)


HINTS = (
    "The slope of max(x, 0) is 1 where x is positive, and 0 where it is negative.",
    "In NumPy x > 0 is an array of True and False, which count as 1 and 0 in a product.",
    "dx is the product of dy and x > 0.",
)
MISTAKES = (
    (
        "dy * (x > 0)",
        "dy * x",
        "stale variable",
        "dx: dy is multiplied by x, and not by the slope, which is 1 or 0",
    ),
)
OP = "relu"
