"""The cross-entropy of softmax and a class for each row, averaged.

p = softmax(x), loss = −mean over the rows of log p[n, target[n]]. The loss is
a single number, so dloss is one too. A target is a whole number and has no
gradient.

Shapes: x, dx (N, C), target (N,) with classes from 0 to C − 1, loss, dloss ().
"""

import numpy as np


def forward(x: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return the loss, and what backward needs."""
    shifted = x - x.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    one_hot = np.eye(x.shape[-1], dtype=x.dtype)[target]
    loss = -(one_hot * log_p).sum(axis=-1).mean()
    return loss, (np.exp(log_p), one_hot)


def backward(dloss: np.ndarray, cache: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return dx."""
    p, one_hot = cache
    dx: np.ndarray = dloss * (p - one_hot) / len(p)
    return dx


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.standard_normal((6, 4)), rng.integers(0, 4, 6)


HINTS = (
    "log p_c = x_c − log Σ exp(x_j), so ∂ log p_c/∂x_j is (1 if j = c, else 0) − p_j.",
    "For one row the gradient is p with 1 taken off at the target's class. Softmax by itself "
    "need not be differentiated.",
    "The mean divides by the number of rows, and so does its gradient. All of it is times dloss.",
)
MISTAKES = (
    (
        "(p - one_hot)",
        "p * (1 - p)",
        "stale variable",
        "dx: p (1 − p) is the slope of one probability by its own score; the gradient of the loss "
        "is p − 1 at the target, and p elsewhere",
    ),
    (
        "(p - one_hot)",
        "-one_hot / p",
        "function missing",
        "dx: this is the gradient of the probabilities; it still has to go through softmax",
    ),
)
OP = "cross_entropy"
