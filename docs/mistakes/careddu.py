# mypy: ignore-errors
# ruff: noqa: RUF059  (the whole cache is unpacked)
"""L. Careddu: a transformer encoder with a class token, and a network of two layers."""

from __future__ import annotations

import math

import numpy as np

from docs.mistakes.functions import softmax
from docs.mistakes.row import Document, Row, Verdict, checked, measured, normal


def standardized(X):
    centred = X - X.mean()
    return centred / np.sqrt((centred * centred).mean() + 1e-5)


# Section 1: n = 5, m = 4, d₁ = 3, d₂ = 2, k = 3


def encoder_of(h_pre1, h1, cls, WQ, WK, WV, WT, W2, y):
    """Equations (3) to (9)."""
    h_pre2 = np.concatenate([h1, cls[None, :]])
    Q, K, V, T = h_pre2 @ WQ, h_pre2 @ WK, h_pre2 @ WV, h_pre2 @ WT
    S = softmax(Q @ K.T / math.sqrt(K.shape[1]))
    h2 = S @ V + T
    z = h2[-1:] @ W2
    s = softmax(z)
    loss = -np.sum(y * np.log(s))
    return loss, (h_pre1, h_pre2, Q, K, V, S, h2, z, s, y, WQ, WK, WV, WT, W2)


def encoder(X, W1, cls, WQ, WK, WV, WT, W2, y):
    """Equations (1) to (9)."""
    h_pre1 = standardized(X)
    return encoder_of(h_pre1, h_pre1 @ W1, cls, WQ, WK, WV, WT, W2, y)


def encoder_composite(X, W1, cls, WQ, WK, WV, WT, W2, y):
    """The one line at the end of the forward, with X W₁."""
    return encoder_of(standardized(X), X @ W1, cls, WQ, WK, WV, WT, W2, y)


def encoder_inputs():
    X, *weights = normal((5, 4), (4, 3), (3,), *4 * [(3, 2)], (2, 3))
    return 2 * X + 1, *weights, np.array([0.0, 1.0, 0.0])


def equations_1_to_16(dz, cache):
    """The backward, from the gradient that stands in (1) to (4), (13) and (14)."""
    h_pre1, h_pre2, Q, K, V, S, h2, z, s, y, WQ, WK, WV, WT, W2 = cache
    dW2 = h2[-1:].T @ dz
    dWT = h_pre2[-1:].T @ dz @ W2.T
    dWV = h_pre2.T @ S[-1:].T @ dz @ W2.T
    dS = dz @ W2.T @ V.T
    dQK = S[-1:] * (dS - dS @ S[-1:].T) / math.sqrt(K.shape[1])
    dWK = h_pre2.T @ dQK.T @ Q[-1:]
    dWQ = h_pre2[-1:].T @ dQK @ K
    dQ = dQK @ K
    dK = dQK.T @ Q[-1:]
    dV = S[-1:].T @ dz @ W2.T
    dT = dz @ W2.T
    dcls = dQ @ WQ.T + dK[-1:] @ WK.T + dV[-1:] @ WV.T + dT @ WT.T
    dW1 = h_pre1.T @ (dK[:-1] @ WK.T + dV[:-1] @ WV.T)
    return dW1, dcls[0], dWQ, dWK, dWV, dWT, dW2


def z_minus_y(dloss, cache):
    h_pre1, h_pre2, Q, K, V, S, h2, z, s, y, WQ, WK, WV, WT, W2 = cache
    return equations_1_to_16(dloss * (z - y), cache)


def s_minus_y(dloss, cache):
    h_pre1, h_pre2, Q, K, V, S, h2, z, s, y, WQ, WK, WV, WT, W2 = cache
    return equations_1_to_16(dloss * (s - y), cache)


ENCODER = {"wrt": ("W1", "cls", "WQ", "WK", "WV", "WT", "W2")}


def variance_of_scores(readings):
    """q·k/√d_k for q and k of d₂ = 32 standard normal values, d_k taken as one of the sizes."""
    q, k = normal((20_000, 32), (20_000, 32))
    found = {name: np.var((q * k).sum(axis=1) / math.sqrt(d_k)) for name, d_k in readings.items()}
    text = ", ".join(f"{variance:.1f} with d_k = {name}" for name, variance in found.items())
    good = all(abs(variance - 1) < 0.1 for variance in found.values())
    return Verdict(good, f"the scores of q and k of variance 1 have variance {text}")


def d_k_as_k_or_d1():
    return variance_of_scores({"k": 2, "d₁": 8})


def d_k_as_d2():
    return variance_of_scores({"d₂": 32})


def standardize_without_eps(X):
    centred = X - X.mean()
    deviation = np.sqrt((centred * centred).mean())
    y = centred / deviation
    return y, (y, deviation)


def standardize_with_eps(X):
    centred = X - X.mean()
    deviation = np.sqrt((centred * centred).mean() + 1e-5)
    y = centred / deviation
    return y, (y, deviation)


def standardize_backward(dy, cache):
    y, deviation = cache
    return (dy - dy.mean() - y * (dy * y).mean()) / deviation


def constant_sample():
    return (np.full((5, 4), 3.0),)


# Section 2: n = 3, m = 4, d = 2, k = 5


def two_layers(X, W1, B1, W2, B2, y):
    """Equations (1) to (8)."""
    pre_a1 = standardized(X)
    a1 = W1 @ pre_a1.T + B1.reshape(len(W1), len(X))
    h1 = np.maximum(a1, 0)
    pre_a2 = h1.reshape(1, -1)
    a2 = pre_a2 @ W2.T + B2
    s = softmax(a2)
    loss = -np.sum(y * np.log(s))
    return loss, (pre_a1, a1, pre_a2, s, y, W2)


def two_layers_composite(X, W1, B1, W2, B2, y):
    """The one line at the end of the forward."""
    a1 = W1 @ X + B1
    pre_a2 = np.maximum(a1, 0).reshape(1, -1)
    s = softmax(pre_a2 @ W2.T + B2)
    return -np.sum(y * np.log(s)), (standardized(X), a1, pre_a2, s, y, W2)


def two_layers_backward(dloss, cache):
    """(3), (5), (7) and (6), bracketed."""
    pre_a1, a1, pre_a2, s, y, W2 = cache
    da2 = dloss * (s - y)
    dW2 = da2.T @ pre_a2
    da1 = (da2 @ W2).reshape(a1.shape) * (a1 > 0)
    dW1 = da1 @ pre_a1
    return dW1, da1, dW2, da2[0]


def with_ones(dloss, cache):
    """(3) and (6) as printed, (5) and (7) bracketed."""
    pre_a1, a1, pre_a2, s, y, W2 = cache
    ones = np.ones_like(s)
    dW2 = (dloss * (s - y) * ones).T @ pre_a2
    dB2 = dloss * (s - y) * ones
    dB1 = (dB2 @ W2).reshape(a1.shape) * (a1 > 0)
    return dB1 @ pre_a1, dB1, dW2, dB2[0]


def ones_times_w2_first(dloss, cache):
    """(5) and (7) as printed: a product stands before ⊙."""
    pre_a1, a1, pre_a2, s, y, W2 = cache
    da2 = dloss * (s - y)
    ones = np.ones_like(s)
    dW2 = (da2 * ones).T @ pre_a2
    dh1 = (da2 * (ones @ W2)).reshape(a1.shape)
    da1 = dh1 * (a1 > 0)
    return da1 @ pre_a1, da1, dW2, da2[0]


def derivative_times_input_first(dloss, cache):
    """The second half of (5) as printed, its first half put right."""
    pre_a1, a1, pre_a2, s, y, W2 = cache
    da2 = dloss * (s - y)
    dW2 = da2.T @ pre_a2
    dh1 = (da2 @ W2).reshape(a1.shape)
    dW1 = dh1 * ((a1 > 0) @ pre_a1)
    return dW1, dh1 * (a1 > 0), dW2, da2[0]


def two_layers_inputs():
    X, *weights = normal((3, 4), (2, 4), (2, 3), (5, 6), (5,))
    return 2 * X + 1, *weights, np.array([0.0, 0.0, 1.0, 0.0, 0.0])


def square_sample():
    X, *weights = normal((3, 3), (2, 3), (2, 3), (5, 6), (5,))
    return 2 * X + 1, *weights, np.array([0.0, 0.0, 1.0, 0.0, 0.0])


TWO_LAYERS = {"wrt": ("W1", "B1", "W2", "B2")}

DOCUMENT = Document(
    "Custom Neural Networks",
    "L. Careddu",
    (
        Row(
            "Section 1, backward (1) to (4), (13), (14): the gradient of the scores",
            "The gradient of cross-entropy after a softmax is s − y, in the probabilities s; with "
            "the scores z instead, every gradient is wrong. With s − y all sixteen equations are "
            "exact.",
            (
                checked(
                    "∂ℒ/∂W₂ = hᵀ(z − y), and so in (2), (3), (4), (13), (14)",
                    (encoder, z_minus_y),
                    encoder_inputs,
                    **ENCODER,
                ),
            ),
            (
                checked(
                    "∂ℒ/∂W₂ = hᵀ(s − y), and so in the others",
                    (encoder, s_minus_y),
                    encoder_inputs,
                    **ENCODER,
                ),
            ),
        ),
        Row(
            "Section 1, forward (5): d_k",
            "The sizes of the section are n, m, d₁, d₂ and k; d_k is none of them. It is the width "
            "d₂ of the keys.",
            (measured("softmax(QKᵀ/√d_k), d_k = k or d₁", d_k_as_k_or_d1),),
            (measured("softmax(QKᵀ/√d₂)", d_k_as_d2),),
        ),
        Row(
            "Sections 1 and 2, forward (1): standardisation",
            "A constant sample has variance 0, and 0/0 goes through the whole network.",
            (
                checked(
                    "(X − E X)/√E(X − E X)²",
                    (standardize_without_eps, standardize_backward),
                    constant_sample,
                ),
            ),
            (
                checked(
                    "(X − E X)/√(E(X − E X)² + ε)",
                    (standardize_with_eps, standardize_backward),
                    constant_sample,
                ),
                checked("the same, as hg.ops.standardize", "standardize"),
            ),
        ),
        Row(
            "Section 1, forward: ℒ in one line",
            "The summary leaves out (1): the backward, which has the standardised X in (16), is "
            "not its gradient.",
            (
                checked(
                    "ℒ = CE(y, …concat(X W₁, cls)…), backward (1) to (16) with s − y",
                    (encoder_composite, s_minus_y),
                    encoder_inputs,
                    **ENCODER,
                ),
            ),
            (
                checked(
                    "ℒ = CE(y, …concat(h_pre₁ W₁, cls)…)",
                    (encoder, s_minus_y),
                    encoder_inputs,
                    **ENCODER,
                ),
            ),
        ),
        Row(
            "Section 2, forward: ℒ in one line",
            "Neither standardised nor transposed, X (n × m) cannot follow W₁ (d × m).",
            (
                checked(
                    "W₁ X + B1",
                    (two_layers_composite, two_layers_backward),
                    two_layers_inputs,
                    **TWO_LAYERS,
                ),
            ),
            (
                checked(
                    "W₁ pre_a₁ᵀ + B₁",
                    (two_layers, two_layers_backward),
                    two_layers_inputs,
                    **TWO_LAYERS,
                ),
            ),
        ),
        Row(
            "Section 2, backward (5), (7): brackets",
            "A product of matrices is taken before ⊙ unless brackets say otherwise, and these have "
            "none: 𝟏W₂ has dn values where s − y has k, and ReLU′·pre_a₁ is d × m where the other "
            "factor is d × n. Where n = m the second gives numbers, and they are wrong. In (3) "
            "and (6) 𝟏 has its brackets, and changes nothing.",
            (
                checked(
                    "((s − y) ⊙ 𝟏W₂) ⊙ ReLU′(a₁) pre_a₁",
                    (two_layers, ones_times_w2_first),
                    two_layers_inputs,
                    **TWO_LAYERS,
                ),
                checked(
                    "((s − y)W₂) ⊙ ReLU′(a₁) pre_a₁",
                    (two_layers, derivative_times_input_first),
                    two_layers_inputs,
                    **TWO_LAYERS,
                ),
                checked(
                    "the same, n = m",
                    (two_layers, derivative_times_input_first),
                    square_sample,
                    **TWO_LAYERS,
                ),
            ),
            (
                checked(
                    "(((s − y)W₂) ⊙ ReLU′(a₁)) pre_a₁",
                    (two_layers, two_layers_backward),
                    two_layers_inputs,
                    **TWO_LAYERS,
                ),
            ),
            (
                checked(
                    "∂ℒ/∂W₂ = ((s − y) ⊙ 𝟏)ᵀ pre_a₂, ∂ℒ/∂B₂ = (s − y) ⊙ 𝟏",
                    (two_layers, with_ones),
                    two_layers_inputs,
                    **TWO_LAYERS,
                ),
            ),
        ),
    ),
)
