"""Dropout: switch values off at random in training, and scale up those that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


class Cache(NamedTuple):
    """The mask, True where a value stayed, and the scale; mask None means that all passed as is."""

    mask: Bool[Array, "*shape"] | None
    scale: float


def validate(
    x: Array, p: float = 0.5, rng: np.random.Generator | None = None, *, training: bool = True
) -> None:
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"dropout: p is {p!r}; allowed: 0 to 1")
    if training and p > 0.0 and not isinstance(rng, np.random.Generator):
        raise ArgumentError(
            f"dropout: rng is {rng!r}; allowed in training: a numpy.random.Generator"
        )


def draw_mask(shape: tuple[int, ...], p: float, rng: np.random.Generator) -> np.ndarray:
    """True with probability 1 − p, from one float32 per value in row-major order."""
    return rng.random(shape, dtype=np.float32) >= p


@operation
def forward(
    x: Float[Array, "*shape"],
    p: float = 0.5,
    rng: np.random.Generator | None = None,
    *,
    training: bool = True,
) -> tuple[Float[Array, "*shape"], Cache]:
    """Inverted dropout: the expectation of y is x, so nothing is left to do at inference.

    Forward:  y = x mask/(1 − p),  each mask value 0 with probability p, else 1
    Backward: dx = dy mask/(1 − p)

    At inference, and with p = 0, y = x and nothing is drawn from `rng`. With p = 1, y = 0 and
    dx = 0. A value that is dropped gives 0 whatever it was, NaN included.

    Shapes: x, y any shape. `rng` is advanced by one float32 per value of x.
    Raises ArgumentError for p outside 0 to 1, or without a generator in training.
    Source: Gulino, Neural Network Simplified Mathematics (2025), dropout, with the 1/(1 − p) that
    it leaves out; Srivastava et al., Dropout: a simple way to prevent neural networks from
    overfitting (2014).
    """
    if not training or p == 0.0 or rng is None:
        return x, Cache(None, 1.0)
    xp = array_namespace(x)
    mask = xp.asarray(draw_mask(tuple(x.shape), p, rng), device=device(x))
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    y = xp.where(mask, scale * x, xp.zeros_like(x))
    return y, Cache(mask, scale)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = dy mask/(1 − p)."""
    mask, scale = cache
    if mask is None:
        return dy
    xp = array_namespace(dy)
    dx = xp.where(mask, scale * dy, xp.zeros_like(dy))
    return dx
