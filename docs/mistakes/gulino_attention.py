# mypy: ignore-errors
# ruff: noqa: RUF059  (the whole cache is unpacked)
"""C. Gulino: attention, forward and backward; T = 5 positions, d_in = 3."""

from __future__ import annotations

import math

import numpy as np

import handgrad as hg
from docs.mistakes.functions import softmax
from docs.mistakes.row import Row, Verdict, checked, measured, normal


def attention(Q, K, V):
    scale = 1 / math.sqrt(Q.shape[1])
    Z = scale * (Q @ K.T)
    A = softmax(Z)
    Y = A @ V
    return Y, (Q, K, V, A, scale)


def attention_backward(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (A * dA).sum(axis=1, keepdims=True))
    dQ = scale * (dZ @ K)
    dK = scale * (dZ.T @ Q)
    return dQ, dK, dV


def divided_by_scale(q, k, v):
    scale = 1 / math.sqrt(q.shape[-1])
    a = softmax(q @ np.swapaxes(k, -1, -2) / scale)
    return a @ v, hg.ops.attention.forward(q, k, v)[1]


def times_scale(q, k, v):
    scale = 1 / math.sqrt(q.shape[-1])
    a = softmax(q @ np.swapaxes(k, -1, -2) * scale)
    return a @ v, hg.ops.attention.forward(q, k, v)[1]


def variance_of_scores(scores):
    q, k = normal((20_000, 64), (20_000, 64))
    variance = np.var(scores((q * k).sum(axis=1), 1 / math.sqrt(64)))
    text = f"the scores of q and k of variance 1, d = 64, have variance {variance:.0f}"
    return Verdict(abs(variance - 1) < 0.1, text)


def variance_divided():
    return variance_of_scores(lambda products, scale: products / scale)


def variance_multiplied():
    return variance_of_scores(lambda products, scale: products * scale)


def strictly_before(Q, K, V):
    """x_t depends on x_1 … x_{t−1}."""
    M = np.where(np.tri(len(Q), k=-1) == 1, 0.0, -np.inf).astype(Q.dtype)
    scale = 1 / math.sqrt(Q.shape[1])
    with np.errstate(invalid="ignore"):
        A = softmax(scale * (Q @ K.T) + M)
    return A @ V, (Q, K, V, A, scale)


def mask_of_the_notes():
    """The x that move y, when the mask is on where the printed M is 1."""
    q, k, v = normal(*3 * [(1, 1, 4, 3)])
    M = np.where(np.tri(4) == 1, 1.0, -np.inf)
    y, cache = hg.ops.attention.forward(q, k, v, mask=M == 1)
    reads = [[s + 1 for s in range(4) if cache.a[0, 0, t, s] > 0] for t in range(4)]
    expected = [list(range(1, t + 2)) for t in range(4)]
    text = "; ".join(f"y{t + 1} from x{', x'.join(map(str, each))}" for t, each in enumerate(reads))
    return Verdict(reads == expected, text)


def multiplied_mask(Q, K, V):
    M = np.where(np.tri(len(Q)) == 1, 1.0, -np.inf).astype(Q.dtype)
    scale = 1 / math.sqrt(Q.shape[1])
    with np.errstate(invalid="ignore"):
        A = softmax(scale * (Q @ K.T * M))
    return A @ V, (Q, K, V, A, scale)


def mask_as_factor(Q, K, V):
    M = np.where(np.tri(len(Q)) == 1, 1.0, -np.inf).astype(Q.dtype)
    scale = 1 / math.sqrt(Q.shape[1])
    with np.errstate(invalid="ignore"):
        A = softmax(scale * (Q @ K.T @ M))
    return A @ V, (Q, K, V, A, scale)


def added_mask(Q, K, V):
    """x_t depends on x_1 … x_t."""
    M = np.where(np.tri(len(Q)) == 1, 0.0, -np.inf).astype(Q.dtype)
    scale = 1 / math.sqrt(Q.shape[1])
    A = softmax(scale * (Q @ K.T) + M)
    return A @ V, (Q, K, V, A, scale)


def dv_without_transpose(dY, cache):
    Q, K, V, A, scale = cache
    dV = A @ dY
    dA = dY @ V.T
    dZ = A * (dA - (A * dA).sum(axis=1, keepdims=True))
    return scale * (dZ @ K), scale * (dZ.T @ Q), dV


def projected(X, WV, A):
    """Y = A X W_V, with the attention weights A held fixed."""
    V = X @ WV
    return A @ V, (X, WV, A)


def dwv_without_transpose(dY, cache):
    X, WV, A = cache
    dWV = X.T @ A @ dY
    return dWV


def dwv_with_transpose(dY, cache):
    X, WV, A = cache
    dWV = X.T @ A.T @ dY
    return dWV


def transposed_and_unscaled(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (A * dA).sum(axis=1, keepdims=True))
    dQ = dZ.T @ K
    dK = dZ.T @ Q
    return dQ, dK, dV


def only_transposed(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (A * dA).sum(axis=1, keepdims=True))
    dQ = scale * (dZ.T @ K)
    dK = scale * (dZ.T @ Q)
    return dQ, dK, dV


def jacobian_of_d_in(dY, cache):
    """∂A/∂Z of every row: a_i (1 − a_i) on the diagonal, −a_i a_j beside it; i, j = 1 … d_in."""
    Q, K, V, A, scale = cache
    d_in = Q.shape[1]
    dA = dY @ V.T
    jacobian = A[:, :d_in, None] * (np.eye(d_in) - A[:, None, :d_in])
    dZ = (dA[:, None, :] @ jacobian)[:, 0]
    return scale * (dZ @ K), scale * (dZ.T @ Q), A.T @ dY


def jacobian_of_t(dY, cache):
    """The same with i, j = 1 … T."""
    Q, K, V, A, scale = cache
    T = K.shape[0]
    dA = dY @ V.T
    jacobian = A[:, :T, None] * (np.eye(T, dtype=A.dtype) - A[:, None, :T])
    dZ = (dA[:, None, :] @ jacobian)[:, 0]
    return scale * (dZ @ K), scale * (dZ.T @ Q), A.T @ dY


QKV = ((5, 3), (5, 3), (5, 3))
HEADS = ((2, 1, 5, 3), (2, 1, 4, 3), (2, 1, 4, 3))
ROWS = (
    Row(
        "Attention, forward: the scale",
        "Dividing by 1/√d multiplies by √d; that takes the variance of the scores from d to "
        "d² instead of 1.",
        (
            checked(
                "A = softmax(QKᵀ/scale), scale = 1/√d",
                (divided_by_scale, hg.ops.attention.backward),
                HEADS,
                like="attention",
            ),
            measured("the same", variance_divided),
        ),
        (
            checked(
                "A = softmax(QKᵀ · scale), scale = 1/√d",
                (times_scale, hg.ops.attention.backward),
                HEADS,
                like="attention",
            ),
            measured("the same", variance_multiplied),
        ),
    ),
    Row(
        "Attention, forward: what x_t depends on",
        "The mask that is printed below the sentence keeps the diagonal; without it the first "
        "row would be a softmax of nothing.",
        (
            checked(
                "x_t depends on x_1 … x_{t−1}",
                (strictly_before, attention_backward),
                QKV,
            ),
        ),
        (
            checked("x_t depends on x_1 … x_t", (added_mask, attention_backward), QKV),
            measured("the same, with the printed M", mask_of_the_notes),
        ),
    ),
    Row(
        "Attention, forward: how the mask is applied",
        "A negative score times −∞ is +∞, and 0 times −∞ is NaN.",
        (
            checked(
                "A = softmax(QKᵀ · M/√d), M of 1 and −∞, value by value",
                (multiplied_mask, attention_backward),
                QKV,
            ),
            checked(
                "the same, as a product of matrices", (mask_as_factor, attention_backward), QKV
            ),
        ),
        (
            checked(
                "A = softmax(QKᵀ/√d + M), M of 0 and −∞",
                (added_mask, attention_backward),
                QKV,
            ),
        ),
    ),
    Row(
        "Attention, backward: ∂L/∂V and ∂L/∂W_V",
        "Row i of V goes to every row of Y with the weights of column i of A.",
        (
            checked(
                "∂L/∂V = A ∂L/∂Y",
                (attention, dv_without_transpose),
                QKV,
            ),
            checked(
                "∂L/∂W_V = Xᵀ A ∂L/∂Y",
                (projected, dwv_without_transpose),
                ((5, 3), (3, 2), (5, 5)),
                wrt=("WV",),
            ),
        ),
        (
            checked("∂L/∂V = Aᵀ ∂L/∂Y", (attention, attention_backward), QKV),
            checked(
                "∂L/∂W_V = Xᵀ Aᵀ ∂L/∂Y",
                (projected, dwv_with_transpose),
                ((5, 3), (3, 2), (5, 5)),
                wrt=("WV",),
            ),
        ),
    ),
    Row(
        "Attention, backward: ∂L/∂Q and ∂L/∂K",
        "Only dK has the transpose, and both have the scale that stands in Z.",
        (
            checked(
                "∂L/∂Q = (∂L/∂Z)ᵀ K, ∂L/∂K = (∂L/∂Z)ᵀ Q",
                (attention, transposed_and_unscaled),
                QKV,
            ),
            checked("the same, divided by √d", (attention, only_transposed), QKV),
        ),
        (
            checked(
                "∂L/∂Q = ∂L/∂Z · K/√d, ∂L/∂K = (∂L/∂Z)ᵀ Q/√d",
                (attention, attention_backward),
                QKV,
            ),
        ),
    ),
    Row(
        "Attention, backward: the size of the softmax's Jacobian",
        "A softmax over T scores has a T × T Jacobian, one for every row; the width d_in of "
        "the inputs has no part in it.",
        (
            checked(
                "∂A_i/∂Z_i ∈ ℝ^(d_in × d_in)",
                (attention, jacobian_of_d_in),
                QKV,
            ),
        ),
        (checked("∂A_i/∂Z_i ∈ ℝ^(T × T)", (attention, jacobian_of_t), QKV),),
    ),
)
