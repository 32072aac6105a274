"""A linear map: each row of x times a matrix, plus a bias.

y = x Wᵀ + b, or value by value y[n, e] = Σ_d x[n, d] W[e, d] + b[e]. The
weight is kept as (out, in). All rows share W and b, so their gradients are
sums over the rows.

Shapes: x, dx (N, D), weight, dweight (E, D), bias, dbias (E,), y, dy (N, E).
"""

import numpy as np


def forward(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return y, and what backward needs."""
    y = x @ weight.T + bias
    return y, (x, weight)


def backward(
    dy: np.ndarray, cache: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dx, dweight, dbias."""
    x, weight = cache
    dx = dy @ weight
    dweight = dy.T @ x
    dbias = dy.sum(axis=0)
    return dx, dweight, dbias


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.standard_normal((5, 3)), rng.standard_normal((7, 3)), rng.standard_normal(7)


HINTS = (
    "Each gradient has the shape of what it belongs to. With three different sizes there is one "
    "way to multiply dy by weight that gives (N, D), and one to multiply it by x that gives (E, "
    "D).",
    "∂y[n, e]/∂x[n, d] = W[e, d], so dx[n, d] = Σ_e dy[n, e] W[e, d]: the product of dy and "
    "weight.",
    "dweight[e, d] = Σ_n dy[n, e] x[n, d] is the product of dy transposed and x; bias is added "
    "to every row, so dbias is the sum of dy over the rows.",
)
OP = "linear"
