# mypy: ignore-errors

"""C. Gulino: the chain of layers y₁ = f₁(x), y₂ = f₂(y₁), y₃ = f₃(y₂), of 2, 3, 4 and 5 values."""

from __future__ import annotations

import numpy as np

from docs.mistakes.row import Row, checked


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


ROWS = (
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
)
