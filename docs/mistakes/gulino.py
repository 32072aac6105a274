# mypy: ignore-errors
# ruff: noqa: RUF059  (the whole cache is unpacked)
"""C. Gulino: attention, residual connections, the chain of layers, Adam, dropout, normalisation."""

from __future__ import annotations

import math

import numpy as np

import handgrad as hg
from docs.mistakes.functions import softmax
from docs.mistakes.row import Document, Row, Verdict, checked, measured, normal, number

# Attention: T = 5 places, d_in = 3


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
    told = f"the scores of q and k of variance 1, d = 64, have variance {variance:.0f}"
    return Verdict(abs(variance - 1) < 0.1, told)


def variance_divided():
    return variance_of_scores(lambda products, scale: products / scale)


def variance_multiplied():
    return variance_of_scores(lambda products, scale: products * scale)


def strictly_before(Q, K, V):
    """x_t sees x_1 … x_{t−1}."""
    M = np.where(np.tri(len(Q), k=-1) == 1, 0.0, -np.inf).astype(Q.dtype)
    scale = 1 / math.sqrt(Q.shape[1])
    with np.errstate(invalid="ignore"):
        A = softmax(scale * (Q @ K.T) + M)
    return A @ V, (Q, K, V, A, scale)


def mask_of_the_notes():
    """Which x move y, when the mask is on where the printed M is 1."""
    q, k, v = normal(*3 * [(1, 1, 4, 3)])
    M = np.where(np.tri(4) == 1, 1.0, -np.inf)
    y, cache = hg.ops.attention.forward(q, k, v, mask=M == 1)
    reads = [[s + 1 for s in range(4) if cache.a[0, 0, t, s] > 0] for t in range(4)]
    expected = [list(range(1, t + 2)) for t in range(4)]
    told = "; ".join(f"y{t + 1} from x{', x'.join(map(str, each))}" for t, each in enumerate(reads))
    return Verdict(reads == expected, told)


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
    """x_t sees x_1 … x_t."""
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


# Residual connections


def residual(x, W):
    f = np.tanh(x @ W)
    y = x + f
    return y, (x, W, f)


def one_plus_dy_dx(dy, cache):
    x, W, f = cache
    dz = dy * (1 - f * f)
    through_f = dz @ W.T
    through_y = dy + through_f
    dx = dy + through_y
    return dx, x.T @ dz


def one_plus_df_dx(dy, cache):
    x, W, f = cache
    dz = dy * (1 - f * f)
    through_f = dz @ W.T
    dx = dy + through_f
    return dx, x.T @ dz


def block(x, W1, W2):
    """y₁ = x + attn(z₁), y₂ = y₁ + fn(z₂), with products for attn, fn and both layer norms."""
    z1 = np.tanh(x)
    y1 = x + z1 @ W1
    z2 = np.tanh(y1)
    y2 = y1 + z2 @ W2
    return y2, (z1, z2, W1, W2)


def literal_product(dy2, cache):
    """∂y₂/∂y₁ · ∂y₁/∂z₂ · ∂z₂/∂y₁ · ∂y₁/∂z₁ · ∂z₁/∂x: y₁ is made before z₂, so ∂y₁/∂z₂ = 0."""
    z1, z2, W1, W2 = cache
    dy1 = dy2 + (dy2 @ W2.T) * (1 - z2 * z2)
    dz2 = dy1 @ np.zeros_like(W2)
    dy1 = dz2 * (1 - z2 * z2)
    dx = (dy1 @ W1.T) * (1 - z1 * z1)
    return dx


def product_without_skips(dy2, cache):
    """The same with ∂y₂/∂z₂ for ∂y₂/∂y₁ · ∂y₁/∂z₂."""
    z1, z2, W1, W2 = cache
    dy1 = (dy2 @ W2.T) * (1 - z2 * z2)
    dx = (dy1 @ W1.T) * (1 - z1 * z1)
    return dx


def both_skips(dy2, cache):
    z1, z2, W1, W2 = cache
    dy1 = dy2 + (dy2 @ W2.T) * (1 - z2 * z2)
    dx = dy1 + (dy1 @ W1.T) * (1 - z1 * z1)
    return dx


# The chain y₁ = f₁(x), y₂ = f₂(y₁), y₃ = f₃(y₂), of 2, 3, 4 and 5 values


def chain(x, W1, W2, W3):
    y1 = x @ W1
    y2 = y1 @ W2
    y3 = y2 @ W3
    return y3, (x, y1, y2, W1, W2, W3)


def f3_receives_the_product(dy3, cache):
    """din of f₂ is ∂y₃/∂y₂, din of f₃ is ∂y₃/∂y₂ · ∂y₂/∂y₁."""
    x, y1, y2, W1, W2, W3 = cache
    din_2 = dy3 @ W3.T
    din_3 = din_2 @ W2.T
    dW3 = y2.T @ din_3
    dW2 = y1.T @ din_2
    dW1 = x.T @ din_3
    return din_3 @ W1.T, dW1, dW2, dW3


def f1_receives_the_product(dy3, cache):
    """din of f₃ is the loss's ∂L/∂y₃, that of f₂ has ∂y₃/∂y₂ in it, that of f₁ the product."""
    x, y1, y2, W1, W2, W3 = cache
    din_3 = dy3
    din_2 = din_3 @ W3.T
    din_1 = din_2 @ W2.T
    dW3 = y2.T @ din_3
    dW2 = y1.T @ din_2
    dW1 = x.T @ din_1
    return din_1 @ W1.T, dW1, dW2, dW3


def loss_first(x, W1):
    loss = 0.5 * np.sum(x * x)
    return loss @ W1, (x, W1)


def loss_last(x, W1):
    y = x @ W1
    return 0.5 * np.sum(y * y), (x, W1, y)


def loss_backward(dloss, cache):
    x, W1, y = cache
    dy = dloss * y
    return dy @ W1.T, x.T @ dy


# Adam


def adam(gradients, corrections, eps):
    """The parameter after every step from 0, for α = 0.1, β₁ = 0.9, β₂ = 0.999."""
    theta, m, v = np.zeros(1), np.zeros(1), np.zeros(1)
    path = []
    for step, gradient in enumerate(gradients, start=1):
        m = 0.9 * m + (1 - 0.9) * gradient
        v = 0.999 * v + (1 - 0.999) * gradient**2
        first, second = corrections(step)
        with np.errstate(invalid="ignore"):
            theta = theta - 0.1 * (m / first) / (np.sqrt(v / second) + eps)
        path.append(float(theta[0]))
    return path


def correction_times_t():
    path = adam(3 * [2.0], lambda step: (1 - 0.9 * step, 1 - 0.999 * step), 1e-8)
    told = ", ".join(map(number, path))
    return Verdict(path == optimizer_path(3 * [2.0]), f"θ after steps 1, 2, 3: {told}")


def correction_to_the_power_t():
    path = adam(3 * [2.0], lambda step: (1 - 0.9**step, 1 - 0.999**step), 1e-8)
    told = ", ".join(map(number, path))
    same = np.allclose(path, optimizer_path(3 * [2.0]), rtol=1e-12)
    told += f", {'' if same else 'not '}as by hg.optimizers.Adam"
    return Verdict(same, f"θ after steps 1, 2, 3: {told}")


def without_eps():
    (theta,) = adam([0.0], lambda step: (1 - 0.9**step, 1 - 0.999**step), 0.0)
    return Verdict(theta == 0.0, f"θ after a step with gradient 0: {number(theta)}")


def with_eps():
    (theta,) = adam([0.0], lambda step: (1 - 0.9**step, 1 - 0.999**step), 1e-8)
    same = theta == optimizer_path([0.0])[0]
    return Verdict(same, f"θ after a step with gradient 0: {number(theta)}")


def optimizer_path(gradients):
    optimizer, parameters = hg.optimizers.Adam(0.1), {"theta": np.zeros(1)}
    path = []
    for gradient in gradients:
        optimizer.step(parameters, {"theta": np.array([gradient])})
        path.append(float(parameters["theta"][0]))
    return path


def root_of_v(gradients):
    v = 0.0
    for gradient in gradients:
        v = 0.999 * v + (1 - 0.999) * gradient**2
    return math.sqrt(v / (1 - 0.999 ** len(gradients)))


def v_as_deviation():
    found, expected = root_of_v(100 * [2.0]), np.std(100 * [2.0])
    told = f"for 100 gradients of 2: √v̂ = {found:.2f}, standard deviation {expected:.2f}"
    return Verdict(math.isclose(found, expected), told)


def v_as_raw_moment():
    found, expected = root_of_v(100 * [2.0]), math.sqrt(np.mean(np.square(100 * [2.0])))
    told = f"for 100 gradients of 2: √v̂ = {found:.2f}, root of the mean square {expected:.2f}"
    return Verdict(math.isclose(found, expected), told)


# Dropout, layer norm, batch norm


def dropout_without_scale():
    x, p, rng = np.ones(100_000), 0.3, np.random.default_rng(0)
    mask = (rng.random(x.shape) > p).astype(float)
    return of_mean((x * mask).mean())


def inverted_dropout():
    y, _ = hg.ops.dropout.forward(np.ones(100_000), 0.3, np.random.default_rng(0))
    return of_mean(y.mean())


def of_mean(mean):
    return Verdict(abs(mean - 1) < 0.01, f"for x = 1 and p = 0.3, y is {mean:.2f} on average")


def dropout_at_inference():
    (x,) = normal((5, 4))
    y, _ = hg.ops.dropout.forward(x, 0.3, training=False)
    same = np.array_equal(x, y)
    return Verdict(same, f"y is {'' if same else 'not '}x")


def divided_by_variance(x, gamma, beta):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    x_hat = (x - mean) / variance
    return gamma * x_hat + beta, hg.ops.layer_norm.forward(x, gamma, beta)[1]


def divided_by_deviation(x, gamma, beta):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    x_hat = (x - mean) / np.sqrt(variance + 1e-5)
    return gamma * x_hat + beta, hg.ops.layer_norm.forward(x, gamma, beta)[1]


def variance_of_a_row(forward):
    x = 10.0 * np.array([[1.0, -1.0, 1.0, -1.0]])
    variance = forward(x, np.ones(4), np.zeros(4))[0].var()
    told = f"a row of variance 100 comes out with variance {variance:.2f}"
    return Verdict(abs(variance - 1) < 1e-6, told)


def row_divided_by_variance():
    return variance_of_a_row(divided_by_variance)


def row_divided_by_deviation():
    return variance_of_a_row(divided_by_deviation)


def dataset_statistics(x, gamma, beta, mean, var, *, training):
    """Mean and variance of the whole dataset, in training too."""
    y = gamma * (x - mean) / np.sqrt(var + 1e-5) + beta
    cache = hg.ops.batch_norm.forward(x, gamma, beta, mean, var, training=training)[1]
    return y, cache


def batch_statistics(x, gamma, beta, mean, var, *, training):
    y = gamma * (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5) + beta
    cache = hg.ops.batch_norm.forward(x, gamma, beta, mean, var, training=training)[1]
    return y, cache


def batch_and_running():
    x, gamma, beta = normal((6, 3), (3,), (3,))
    return 2 * x + 1, gamma, beta, np.zeros(3), np.ones(3)


QKV = ((5, 3), (5, 3), (5, 3))
HEADS = ((2, 1, 5, 3), (2, 1, 4, 3), (2, 1, 4, 3))
BATCH_NORM = {"like": "batch_norm", "wrt": ("x", "gamma", "beta"), "training": True}

DOCUMENT = Document(
    "Neural Network Simplified Mathematics",
    "C. Gulino",
    (
        Row(
            "Layers: which gradient each function receives",
            "A backward receives the gradient of its own output. f₂ makes y₂, so ∂y₃/∂y₂ is "
            "right for it; the product belongs to f₁, and f₃ receives what comes from the loss.",
            (
                checked(
                    "f₃: din = ∂y₃/∂y₂ · ∂y₂/∂y₁",
                    (chain, f3_receives_the_product),
                    ((3, 2), (2, 3), (3, 4), (4, 5)),
                ),
            ),
            (
                checked(
                    "f₃: din = ∂L/∂y₃, f₂: din = ∂L/∂y₃ · ∂y₃/∂y₂, f₁: din = … · ∂y₂/∂y₁",
                    (chain, f1_receives_the_product),
                    ((3, 2), (2, 3), (3, 4), (4, 5)),
                ),
            ),
        ),
        Row(
            "Layers: where the loss stands",
            "The loss is first in the backward pass only; in the forward pass nothing can follow "
            "its one number.",
            (
                checked(
                    "the first layer is a loss",
                    (loss_first, loss_backward),
                    ((3, 2), (2, 4)),
                ),
            ),
            (
                checked(
                    "the last layer is a loss",
                    (loss_last, loss_backward),
                    ((3, 2), (2, 4)),
                ),
            ),
        ),
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
        Row(
            "Transformer block: the derivative of a residual connection",
            "With y = x + f(x), ∂y/∂x on the right would count the skip twice.",
            (
                checked(
                    "∂y/∂x = 1 + ∂y/∂x",
                    (residual, one_plus_dy_dx),
                    ((4, 3), (3, 3)),
                ),
            ),
            (
                checked(
                    "∂y/∂x = 1 + ∂f/∂x",
                    (residual, one_plus_df_dx),
                    ((4, 3), (3, 3)),
                ),
            ),
        ),
        Row(
            "Transformer block: ∂y₂/∂x",
            "y₁ does not depend on z₂, so the printed product is 0; with ∂y₂/∂z₂ in its place it "
            "has one of four paths. The sums further down in the notes have them all.",
            (
                checked(
                    "∂y₂/∂x = ∂y₂/∂y₁ · ∂y₁/∂z₂ · ∂z₂/∂y₁ · ∂y₁/∂z₁ · ∂z₁/∂x",
                    (block, literal_product),
                    ((4, 3), (3, 3), (3, 3)),
                    wrt=("x",),
                ),
                checked(
                    "∂y₂/∂x = ∂y₂/∂z₂ · ∂z₂/∂y₁ · ∂y₁/∂z₁ · ∂z₁/∂x",
                    (block, product_without_skips),
                    ((4, 3), (3, 3), (3, 3)),
                    wrt=("x",),
                ),
            ),
            (
                checked(
                    "∂y₂/∂x = (I + F)(I + A), F = ∂fn/∂y₁, A = ∂attn/∂x",
                    (block, both_skips),
                    ((4, 3), (3, 3), (3, 3)),
                    wrt=("x",),
                ),
            ),
        ),
        Row(
            "Adam: bias correction, ε, and what v is",
            "1 − βT is negative from the second step on, or for any longer horizon T; the sum of "
            "the weights is 1 − βᵗ. A gradient that was always 0 needs ε. v is a mean of squares, "
            "from which no mean has been subtracted.",
            (
                measured("μ̂ = μ/(1 − β₁T), v̂ = v/(1 − β₂T)", correction_times_t),
                measured("θ = θ − α μ̂/√v̂", without_eps),
                measured("√v̂ is a standard deviation", v_as_deviation),
            ),
            (
                measured(
                    "μ̂ = μ/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ)",
                    correction_to_the_power_t,
                ),
                measured("θ = θ − α μ̂/(√v̂ + ε)", with_eps),
                measured("v̂ is the second raw moment", v_as_raw_moment),
            ),
        ),
        Row(
            "Dropout",
            "Values are switched off and nothing makes up for them, so a network trained with the "
            "mask sees other means without it.",
            (measured("y = x · mask", dropout_without_scale),),
            (
                measured("y = x · mask/(1 − p) in training", inverted_dropout),
                measured("y = x at inference", dropout_at_inference),
                checked("its backward, as hg.ops.dropout has it", "dropout"),
            ),
        ),
        Row(
            "Layer norm",
            "Divided by the variance, a row still depends on its scale, the other way round; and a "
            "constant row needs ε.",
            (
                checked(
                    "x̂ = (x − μ)/σ²",
                    (divided_by_variance, hg.ops.layer_norm.backward),
                    ((5, 4), (4,), (4,)),
                    like="layer_norm",
                ),
                measured("the same", row_divided_by_variance),
            ),
            (
                checked(
                    "x̂ = (x − μ)/√(σ² + ε)",
                    (divided_by_deviation, hg.ops.layer_norm.backward),
                    ((5, 4), (4,), (4,)),
                    like="layer_norm",
                ),
                measured("the same", row_divided_by_deviation),
            ),
        ),
        Row(
            "Batch norm",
            "In training the statistics are those of the batch, and gradients flow through them; "
            "the running average is for inference.",
            (
                checked(
                    "μ, σ² of the whole dataset",
                    (dataset_statistics, hg.ops.batch_norm.backward),
                    batch_and_running,
                    **BATCH_NORM,
                ),
            ),
            (
                checked(
                    "μ, σ² of the batch",
                    (batch_statistics, hg.ops.batch_norm.backward),
                    batch_and_running,
                    **BATCH_NORM,
                ),
                checked(
                    "batch and running statistics, as hg.ops.batch_norm has them", "batch_norm"
                ),
            ),
        ),
    ),
)
