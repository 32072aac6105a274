"""Scaled dot-product attention: each query takes a weighted mean of the values.

s = q kᵀ/√d, a = softmax(s) over the keys, y = a v. It is put together from
what you have written: two products of matrices with a softmax between them.

Shapes: q, dq (T, d), k, dk (S, d), v, dv (S, e), s, a (T, S), y, dy (T, e).
"""

import math

import numpy as np


def forward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Return y, and what backward needs."""
    s = q @ k.T / math.sqrt(q.shape[-1])
    powers = np.exp(s - s.max(axis=-1, keepdims=True))
    a = powers / powers.sum(axis=-1, keepdims=True)
    y = a @ v
    return y, (q, k, v, a)


def backward(
    dy: np.ndarray, cache: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dq, dk, dv."""
    q, k, v, a = cache
    dv = a.T @ dy
    da = dy @ v.T
    ds = a * (da - (a * da).sum(axis=-1, keepdims=True))
    dq = ds @ k / math.sqrt(q.shape[-1])
    dk = ds.T @ q / math.sqrt(q.shape[-1])
    return dq, dk, dv


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.standard_normal((5, 3)), rng.standard_normal((7, 3)), rng.standard_normal((7, 2))


HINTS = (
    "Begin with the last product, y = a v: it gives da and dv, and each has one way to fit its "
    "shape.",
    "From da to ds is the backward of softmax, ds = a (da − Σ a da) with the sum over the keys.",
    "s = q kᵀ/√d gives dq = ds k/√d and dk = dsᵀ q/√d: the scale stands in both.",
)
MISTAKES = (
    (
        "(a * da).sum(axis=-1, keepdims=True)",
        "(a * da).sum(axis=0)",
        "wrong axis",
        "ds: the sum of a da runs over the queries; softmax is over the keys, the last axis",
    ),
)
OP = "attention"
