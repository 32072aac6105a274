"""Layer normalisation: rows of mean 0 and variance 1, then scaled and shifted.

x̂ = (x − μ)/√(σ² + 10⁻⁵), y = γ x̂ + β, where μ and σ² are each row's mean and
variance. All values of a row move its mean and its variance, so that each
value of x reaches y on three ways.

Shapes: x, y, dy, dx (N, D), gamma, beta, dgamma, dbeta (D,).
"""

import numpy as np


def forward(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return y, and what backward needs."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    inv_std = 1 / np.sqrt(variance + 1e-5)
    x_hat = centred * inv_std
    y = gamma * x_hat + beta
    return y, (x_hat, inv_std, gamma)


def backward(
    dy: np.ndarray, cache: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dx, dgamma, dbeta."""
    x_hat, inv_std, gamma = cache
    dgamma = (dy * x_hat).sum(axis=0)
    dbeta = dy.sum(axis=0)
    dx_hat = dy * gamma
    mean = dx_hat.mean(axis=-1, keepdims=True)
    projection = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat - mean - projection) * inv_std
    return dx, dgamma, dbeta


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.standard_normal((5, 7)), rng.standard_normal(7), rng.standard_normal(7)


HINTS = (
    "Begin at the end: gamma and beta serve every row, so dgamma and dbeta are sums over the "
    "rows, and dx̂ = dy γ.",
    "dx has three terms: one through x itself, one through the mean, one through the variance. "
    "The last two are means over the row, and are taken off.",
    "dx = (dx̂ − mean(dx̂) − x̂ mean(dx̂ x̂))/√(σ² + 10⁻⁵), with means over the row that keep "
    "their axis.",
)
OP = "layer_norm"
