"""The mean of a text's vectors over the tokens that are there, and its direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

#: A text without tokens, or whose mean is 0, has the vector 0.
LEAST: float = 1e-12


class Cache(NamedTuple):
    """The weights of the steps, and of a normalised mean the direction and 1/length."""

    weights: Array
    direction: Array | None
    inv_length: Array | None


def mean_pool(
    h: Float[Array, "N T D"],
    *,
    mask: Bool[Array, "N T"] | None = None,
    lengths: Int[Array, "N"] | None = None,
    normalize: bool = False,
) -> tuple[Float[Array, "N D"], Cache]:
    """p = Σ_t w_t h_t, w_t = 1/(number of tokens) for one that is there, else 0; then p/‖p‖.

    A token is there if its mask is True and it is one of the first `lengths` of its text; a text
    without any has p = 0. Without `normalize` p itself comes back.
    """
    xp = array_namespace(h)
    batch, steps, _ = h.shape
    there = xp.ones((batch, steps), dtype=xp.bool) if mask is None else mask
    if lengths is not None:
        there = there & (xp.arange(steps)[None, :] < lengths[:, None])
    weights = xp.astype(there, h.dtype)
    count = xp.sum(weights, axis=1, keepdims=True)
    weights = xp.expand_dims(weights / xp.where(count > 0, count, xp.ones_like(count)), axis=2)
    p = xp.sum(weights * h, axis=1)
    if not normalize:
        return p, Cache(weights, None, None)
    length = xp.sqrt(xp.sum(p * p, axis=1, keepdims=True))
    inv_length = 1.0 / xp.where(length > LEAST, length, xp.full_like(length, LEAST))
    direction = p * inv_length
    return direction, Cache(weights, direction, inv_length)


def mean_pool_backward(dy: Float[Array, "N D"], cache: Cache) -> Float[Array, "N T D"]:
    """dh_t = w_t dp,  dp = dy, or with u = p/‖p‖ dp = (dy − u (u · dy))/‖p‖."""
    weights, direction, inv_length = cache
    xp = array_namespace(dy)
    dp = dy
    if direction is not None and inv_length is not None:
        along = xp.sum(direction * dy, axis=1, keepdims=True)
        dp = (dy - direction * along) * inv_length
    return weights * xp.expand_dims(dp, axis=1)
