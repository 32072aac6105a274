# mypy: ignore-errors
# ruff: noqa: RUF059  (the whole cache is unpacked)
"""Transformer Layer, notes in Romanian: multi-head attention, add & norm, feed-forward network."""

from __future__ import annotations

import math

import numpy as np

import handgrad as hg
from docs.mistakes.functions import no_backward, softmax
from docs.mistakes.row import Document, Row, Verdict, checked, measured, normal
from handgrad.layers.attention import split_heads

# Section 1: n = 3, d_model = 8, h = 2, d = 4


def two_heads(X, WQ, WK, WV, WO):
    """Q, K and V are split into Q⁽¹⁾, Q⁽²⁾, …, each with d columns."""
    d = WO.shape[0] // 2
    Q, K, V = X @ WQ, X @ WK, X @ WV
    head_1 = softmax(Q[:, :d] @ K[:, :d].T / math.sqrt(d)) @ V[:, :d]
    head_2 = softmax(Q[:, d:] @ K[:, d:].T / math.sqrt(d)) @ V[:, d:]
    return np.concatenate([head_1, head_2], axis=1) @ WO, None


def multi_head_attention():
    rng = np.random.default_rng(0)
    return hg.MultiHeadAttention(8, heads=2, bias=False, rng=rng, dtype=np.float64)


def example_of_section_2():
    Q = np.array([[1, 2, 3, 4, 5, 6, 7, 8], [2, 1, 0, 1, 3, 3, 2, 2], [0, 1, 1, 0, 9, 8, 7, 6]])
    Q_1, Q_2 = split_heads(Q[None], heads=2)[0]
    good = np.array_equal(Q_1, Q[:, :4]) and np.array_equal(Q_2, Q[:, 4:])
    return Verdict(good, f"Q⁽¹⁾ = {Q_1.tolist()}, Q⁽²⁾ = {Q_2.tolist()}")


# Section 5


def one_weight_for_all_heads():
    X, WQ, WK, WV = normal((3, 8), (8, 4), (8, 4), (8, 4))
    heads = [attention_head(X, WQ, WK, WV) for _ in range(2)]
    return Verdict(not np.array_equal(*heads), f"head₁ and head₂ {compared(*heads)}")


def weights_of_every_head():
    X, WQ, WK, WV = normal((3, 8), (2, 8, 4), (2, 8, 4), (2, 8, 4))
    heads = [attention_head(X, WQ[i], WK[i], WV[i]) for i in range(2)]
    y, _ = hg.ops.attention.forward((X @ WQ)[None], (X @ WK)[None], (X @ WV)[None])
    same = np.allclose(y[0], heads, rtol=1e-12)
    text = f"head₁ and head₂ {compared(*heads)}, and are {'' if same else 'not '}those of "
    return Verdict(same and not np.array_equal(*heads), text + "hg.ops.attention")


def attention_head(X, WQ, WK, WV):
    Q, K, V = X @ WQ, X @ WK, X @ WV
    return softmax(Q @ K.T / math.sqrt(K.shape[1])) @ V


def compared(one, other):
    return "are equal" if np.array_equal(one, other) else "differ"


# Section 4


def feed_forward(X, W1, b1, W2, b2):
    """Steps 1 to 3, the two values called V with names of their own: A, and V."""
    A = X @ W1 + b1
    V = np.maximum(A, 0)
    Y = V @ W2 + b2
    return Y, (X, A, V, W1, W2)


def one_name(dY, cache):
    """∂L/∂V = δY W₂ᵀ, and then on through step 1, V = X W₁ + b₁."""
    X, A, V, W1, W2 = cache
    dW2 = V.T @ dY
    db2 = dY.sum(axis=0)
    dV = dY @ W2.T
    dW1 = X.T @ dV
    db1 = dV.sum(axis=0)
    dX = dV @ W1.T
    return dX, dW1, db1, dW2, db2


def two_names(dY, cache):
    X, A, V, W1, W2 = cache
    dW2 = V.T @ dY
    db2 = dY.sum(axis=0)
    dV = dY @ W2.T
    dA = dV * (A > 0)
    dW1 = X.T @ dA
    db1 = dA.sum(axis=0)
    dX = dA @ W1.T
    return dX, dW1, db1, dW2, db2


def numbers_of_the_notes():
    X = np.array([[1.0, 0, 2, 1], [0, 1, 1, 0]])
    W1 = np.array([[1.0, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]])
    W2 = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    Y, cache = feed_forward(X, W1, np.array([0.0, 1, 0]), W2, np.array([0.0, 0, 1, 0]))
    dY = Y - np.array([[1.0, 0, 0, 1], [0, 0, 1, 1]])
    same = all(map(np.array_equal, one_name(dY, cache), two_names(dY, cache)))
    text = f"XW₁ + b₁ is {cache[1].min():g} or more; the gradients by one name and by two are "
    return Verdict(same, text + ("equal" if same else "different"))


def gelu_network(X, W1, b1, W2, b2):
    """The same with GELU for ReLU: "ReLU or equivalents"."""
    A = X @ W1 + b1
    V, gelu_cache = hg.ops.gelu.forward(A)
    return V @ W2 + b2, (X, A, V, W1, W2)


def gelu_derivative_at(values, dV):
    _, cache = hg.ops.gelu.forward(values)
    return hg.ops.gelu.backward(dV, cache)


def derivative_after(dY, cache):
    """V has been overwritten: GELU′ is taken of its value after GELU."""
    X, A, V, W1, W2 = cache
    dA = gelu_derivative_at(V, dY @ W2.T)
    return dA @ W1.T, X.T @ dA, dA.sum(axis=0), V.T @ dY, dY.sum(axis=0)


def derivative_before(dY, cache):
    X, A, V, W1, W2 = cache
    dA = gelu_derivative_at(A, dY @ W2.T)
    return dA @ W1.T, X.T @ dA, dA.sum(axis=0), V.T @ dY, dY.sum(axis=0)


# Section 5, add & norm


def moments_of_a_normalized_row():
    z = np.zeros((1, 8))
    z[0, 0] = 1.0
    y = hg.ops.layer_norm.forward(z, np.ones(8), np.zeros(8), eps=0.0)[0]
    return y.mean(), (y**2).mean(), (y**3).mean()


def standard_normal():
    mean, variance, third = moments_of_a_normalized_row()
    text = f"(1, 0, …, 0) normalised has third moment {third:.2f}; a standard normal has 0"
    return Verdict(abs(third) < 0.1, text)


def mean_0_variance_1():
    mean, variance, third = moments_of_a_normalized_row()
    good = abs(mean) < 1e-9 and abs(variance - 1) < 1e-9
    return Verdict(
        good, f"(1, 0, …, 0) normalised has mean {abs(mean):.2f}, variance {variance:.2f}"
    )


NETWORK = ((5, 4), (4, 3), (3,), (3, 4), (4,))

DOCUMENT = Document(
    "Transformer Layer: notițe și arhitectură",
    "No author is named",
    (
        Row(
            "Section 1, parameters: the shape of W_Q, W_K, W_V",
            "With W_Q of d_model × d, all of Q is as wide as one head, and there is nothing left "
            "to split. Either W_Q is d_model × d_model, or every head has a W_Q of its own.",
            (
                checked(
                    "W_Q ∈ ℝ^(d_model × d), Q = XW_Q split into h heads of d columns",
                    (two_heads, no_backward),
                    ((3, 8), (8, 4), (8, 4), (8, 4), (8, 8)),
                ),
            ),
            (
                checked(
                    "W_Q ∈ ℝ^(d_model × d_model), as the layer hg.MultiHeadAttention has it",
                    multi_head_attention,
                    ((1, 3, 8),),
                ),
                measured("the split of section 2, by that layer", example_of_section_2),
            ),
        ),
        Row(
            "Section 5: head_i without an index",
            "Nothing on the right of head_i = AV depends on i.",
            (
                measured(
                    "head_i = AV, A = softmax(QKᵀ/√d), Q = XW_Q, K = XW_K, V = XW_V",
                    one_weight_for_all_heads,
                ),
            ),
            (measured("head_i = A_i V_i, Q_i = XW_Q,i, …", weights_of_every_head),),
        ),
        Row(
            "Section 4, backward: one name for two values",
            "V is XW₁ + b₁ in step 1 and its ReLU in step 2; ∂L/∂V = δY W₂ᵀ belongs to the second. "
            "Taken for the first, it lacks the derivative of ReLU. That derivative could still be "
            "read off the value after ReLU, which is positive where the value before is; that of "
            "the other functions the notes allow could not.",
            (
                checked(
                    "∂L/∂W₁ = Xᵀ ∂L/∂V",
                    (feed_forward, one_name),
                    NETWORK,
                ),
                checked(
                    "∂L/∂W₁ = Xᵀ (∂L/∂V ⊙ GELU′(V)), V = GELU(V)",
                    (gelu_network, derivative_after),
                    NETWORK,
                ),
            ),
            (
                checked(
                    "∂L/∂W₁ = Xᵀ (∂L/∂V ⊙ ReLU′(A)), A = XW₁ + b₁, V = ReLU(A)",
                    (feed_forward, two_names),
                    NETWORK,
                ),
                checked(
                    "∂L/∂W₁ = Xᵀ (∂L/∂V ⊙ GELU′(A)), V = GELU(A)",
                    (gelu_network, derivative_before),
                    NETWORK,
                ),
            ),
            (measured("∂L/∂W₁ = Xᵀ ∂L/∂V in the numbers of the notes", numbers_of_the_notes),),
        ),
        Row(
            "Section 5, add & norm: what LayerNorm makes of a row",
            "Shifting and scaling change mean and variance, not the kind of distribution.",
            (
                measured(
                    "LN(z) is standard normal",
                    standard_normal,
                ),
            ),
            (
                measured("LN(z) has mean 0 and variance 1", mean_0_variance_1),
                checked("its backward, as hg.ops.layer_norm has it", "layer_norm"),
            ),
        ),
    ),
)
