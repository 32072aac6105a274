# mypy: ignore-errors

"""C. Gulino: residual connections, one of them and the two of a transformer block."""

from __future__ import annotations

import numpy as np

from docs.mistakes.row import Row, checked


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


ROWS = (
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
)
