# mypy: ignore-errors
# ruff: noqa: RUF059  (the whole cache is unpacked)
"""S. Yamanishi, sections 2 and 3: dense and convolutional layers."""

from __future__ import annotations

import numpy as np

from docs.mistakes.functions import softmax
from docs.mistakes.row import Row, checked

# Section 2: columns; h⁽¹⁾ of 3 values, ŷ of 4


def top_layer(h, W, b):
    a = W @ h + b
    y = np.tanh(a)
    return y, (h, W, y)


def plain_product(delta, cache):
    """∂J/∂ŷ f′ h, vector times vector times vector."""
    h, W, y = cache
    derivative = 1 - y * y
    dW = (delta @ derivative) * h
    da = delta * derivative
    return W.T @ da, dW, da


def outer_product(delta, cache):
    h, W, y = cache
    da = delta * (1 - y * y)
    dW = np.outer(da, h)
    return W.T @ da, dW, da


def softmax_layer(h, W, b):
    y = softmax(W @ h + b)
    return y, (h, W, y)


def elementwise_derivative(delta, cache):
    """f′ as a vector: the diagonal of the Jacobian."""
    h, W, y = cache
    da = delta * y * (1 - y)
    return W.T @ da, np.outer(da, h), da


def full_jacobian(delta, cache):
    h, W, y = cache
    jacobian = np.diag(y) - np.outer(y, y)
    da = jacobian @ delta
    return W.T @ da, np.outer(da, h), da


def two_layers(h0, W1, W2):
    a1 = W1 @ h0
    h1 = np.tanh(a1)
    a2 = W2 @ h1
    return a2, (h0, W1, W2, h1)


def own_weights(da2, cache):
    """i = 1: W⁽ⁱ⁾ = W1."""
    h0, W1, W2, h1 = cache
    da1 = (da2 @ W1) * (1 - h1 * h1)
    return W1.T @ da1, np.outer(da1, h0), np.outer(da2, h1)


def weights_above(da2, cache):
    h0, W1, W2, h1 = cache
    da1 = (da2 @ W2) * (1 - h1 * h1)
    return W1.T @ da1, np.outer(da1, h0), np.outer(da2, h1)


# Section 3: one channel, one axis; a kernel of 3 over a signal of 9


def convolution(V, K, s=2):
    J = (len(V) - len(K)) // s + 1
    Z = np.stack([sum(V[s * j + m] * K[m] for m in range(len(K))) for j in range(J)])
    return Z, (V, K, s)


def kernel_gradient(G, cache):
    V, K, s = cache
    return np.stack([sum(G[j] * V[s * j + m] for j in range(len(G))) for m in range(len(K))])


def floor_division(G, cache):
    """V[j] gets from every m what stands at ⌊(j − m)/s⌋."""
    V, K, s = cache
    dV = np.zeros_like(V)
    for j in range(len(V)):
        for m in range(len(K)):
            if 0 <= (j - m) // s < len(G):
                dV[j] += K[m] * G[(j - m) // s]
    return dV, kernel_gradient(G, cache)


def where_divisible(G, cache):
    V, K, s = cache
    dV = np.zeros_like(V)
    for j in range(len(V)):
        for m in range(len(K)):
            if (j - m) % s == 0 and 0 <= (j - m) // s < len(G):
                dV[j] += K[m] * G[(j - m) // s]
    return dV, kernel_gradient(G, cache)


DENSE = ((3,), (4, 3), (4,))
ROWS = (
    Row(
        "(3), (4): ∂J/∂W and ∂J/∂a",
        "W has a row for every value of δ and a column for every value of h: an outer product. "
        "f′ as a vector is the derivative of a function of one value; softmax has a full "
        "Jacobian.",
        (
            checked("∂J/∂W = ∂J/∂ŷ f′ h", (top_layer, plain_product), DENSE),
            checked(
                "∂J/∂a = ∂J/∂ŷ ⊙ f′, f = softmax",
                (softmax_layer, elementwise_derivative),
                DENSE,
            ),
        ),
        (
            checked("∂J/∂W = (∂J/∂ŷ ⊙ f′) hᵀ", (top_layer, outer_product), DENSE),
            checked(
                "∂J/∂a = (diag ŷ − ŷ ŷᵀ) ∂J/∂ŷ, f = softmax",
                (softmax_layer, full_jacobian),
                DENSE,
            ),
        ),
    ),
    Row(
        "(5): which weights carry the gradient down",
        "a⁽ⁱ⁺¹⁾ is made from h⁽ⁱ⁾ by W⁽ⁱ⁺¹⁾. With layers of different widths W⁽ⁱ⁾ does not "
        "even fit.",
        (
            checked(
                "∂J/∂a⁽ⁱ⁾ = (∂J/∂a⁽ⁱ⁺¹⁾ W⁽ⁱ⁾) f′",
                (two_layers, own_weights),
                ((3,), (3, 3), (3, 3)),
            ),
            checked(
                "the same, layers of 2, 3 and 4",
                (two_layers, own_weights),
                ((2,), (3, 2), (4, 3)),
            ),
        ),
        (
            checked(
                "∂J/∂a⁽ⁱ⁾ = W⁽ⁱ⁺¹⁾ᵀ ∂J/∂a⁽ⁱ⁺¹⁾ ⊙ f′",
                (two_layers, weights_above),
                ((2,), (3, 2), (4, 3)),
            ),
        ),
    ),
    Row(
        "Figure 4: the gradient of the input of a strided convolution",
        "V_j is read at (j − m)/s only where that is a whole number, as the sums in (9) say; "
        "rounded down, it is given gradients of positions that never read it.",
        (
            checked(
                "h = Σ_m K_m G_⌊(j−m)/s⌋",
                (convolution, floor_division),
                ((9,), (3,)),
                s=2,
            ),
        ),
        (
            checked(
                "h = Σ_m K_m G_(j−m)/s where s divides j − m",
                (convolution, where_divisible),
                ((9,), (3,)),
                s=2,
            ),
            checked("the same in two dimensions, as hg.ops.conv2d has it", "conv2d"),
        ),
        (
            checked(
                "h = Σ_m K_m G_⌊(j−m)/s⌋ with s = 1",
                (convolution, floor_division),
                ((9,), (3,)),
                s=1,
            ),
        ),
    ),
)
