"""Shared parts of the attention ops: the mask of pairs, and scores to weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.ops import softmax

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def check_pairs(op: str, name: str, array: Array, shape: tuple[int, ...]) -> None:
    """Raise ShapeError unless `array` broadcasts to one value per pair of query and key."""
    try:
        fits = np.broadcast_shapes(tuple(array.shape), shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{op}: {name} has shape {tuple(array.shape)}; allowed: a shape that broadcasts to "
            f"{shape}, one value for every pair of query and key"
        )


def check_states(op: str, s: Array, h: Array) -> None:
    """Raise ShapeError unless the states s (N, J, D) can look at the states h (N, T, E), T ≥ 1."""
    if len(s.shape) != 3:
        raise ShapeError(f"{op}: s has shape {tuple(s.shape)}; allowed: (N, J, D)")
    if len(h.shape) != 3 or h.shape[0] != s.shape[0] or h.shape[1] == 0:
        raise ShapeError(
            f"{op}: h has shape {tuple(h.shape)}; allowed: ({s.shape[0]}, T, E) with T at least 1"
        )


def within(lengths: Int[Array, "N"], keys: int, axes: int) -> Bool[Array, "N *ones S"]:
    """The mask of keys that are among the first `lengths`: so many axes, keys along the last."""
    xp = array_namespace(lengths)
    positions = xp.arange(keys, dtype=lengths.dtype, device=device(lengths))
    return positions < xp.reshape(lengths, (lengths.shape[0], *(1 for _ in range(axes - 1))))


def masked(
    scores: Float[Array, "N *pairs S"],
    mask: Bool[Array, "..."] | None,
    lengths: Int[Array, "N"] | None,
    *,
    causal: bool = False,
    offset: int = 0,
) -> Float[Array, "N *pairs S"]:
    """−∞ in the place of every score that does not count, by the mask, the lengths or the order.

    `causal` keeps the keys up to the query's own position, queries standing from `offset` on.
    """
    xp = array_namespace(scores)
    nothing = xp.full_like(scores, -math.inf)
    queries, keys = scores.shape[-2:]
    if mask is not None:
        scores = xp.where(mask, scores, nothing)
    if lengths is not None:
        scores = xp.where(within(lengths, keys, axes=len(scores.shape)), scores, nothing)
    if causal:
        positions = xp.arange(keys, device=device(scores))
        own_positions = xp.arange(offset, offset + queries, device=device(scores))
        scores = xp.where(positions <= xp.expand_dims(own_positions, axis=-1), scores, nothing)
    return scores


def weights(scores: Float[Array, "*pairs S"]) -> Float[Array, "*pairs S"]:
    """Softmax over the keys; 0 throughout where every score is −∞ (all masked)."""
    y, _ = softmax.forward.reference(scores)  # type: ignore[attr-defined]
    return y
