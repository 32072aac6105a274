"""Attention: every query gets the mean of the values, weighted by how well their keys match it.

Scores are multiplied by 1/√d because q k is a sum of d products: with entries of variance 1 that do
not depend on each other its variance is d, whatever the head is for. Softmax of such scores would
put nearly all weight on one key, and its gradient a (da − Σ a da) would nearly vanish. With the
factor the variance is 1 for heads of every size.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.axes import sum_to
from handgrad.ops.arguments import (
    check_integer,
    check_length_values,
    check_lengths,
    check_size,
)
from handgrad.ops.dropout import draw_mask
from handgrad.ops.scores import check_pairs, masked, weights

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Cache(NamedTuple):
    """q, k and v for the three products of backward, and the weights a before their dropout.

    No mask is kept but that of the dropout, `keep`: a masked weight is 0, and so is all that comes
    through it. Of the bias only its shape is needed.
    """

    q: Array
    k: Array
    v: Array
    bias: Array | None
    a: Array
    keep: Array | None
    scale: float
    keep_scale: float


def validate(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None = None,
    *,
    mask: Array | None = None,
    lengths: Array | None = None,
    causal: bool = False,
    offset: int = 0,
    scale: float | None = None,
    dropout_p: float = 0.0,
    rng: np.random.Generator | None = None,
) -> None:
    for name, array, axes in (("q", q, "(N, H, T, d)"), ("k", k, "(N, G, S, d)")):
        if len(array.shape) != 4 or array.shape[-1] == 0:
            raise ShapeError(
                f"attention: {name} has shape {tuple(array.shape)}; allowed: {axes}, d at least 1"
            )
    batch, heads, queries, features = q.shape
    groups, keys = k.shape[1:3]
    if k.shape[0] != batch or k.shape[3] != features or keys == 0:
        raise ShapeError(
            f"attention: k has shape {tuple(k.shape)}; allowed: ({batch}, G, S, {features}) with S "
            f"at least 1, because q has shape {tuple(q.shape)}"
        )
    if len(v.shape) != 4 or tuple(v.shape[:3]) != tuple(k.shape[:3]):
        raise ShapeError(
            f"attention: v has shape {tuple(v.shape)}; allowed: "
            f"({batch}, {groups}, {keys}, d_v), because k has shape {tuple(k.shape)}"
        )
    if groups == 0 or heads % groups != 0:
        raise ShapeError(
            f"attention: q has {heads} heads and k has {groups}; "
            f"allowed: a number of k's heads that divides {heads}"
        )
    if bias is not None:
        check_pairs("attention", "bias", bias, (batch, heads, queries, keys))
    if mask is not None:
        check_pairs("attention", "mask", mask, (batch, heads, queries, keys))
    if lengths is not None:
        check_lengths("attention", lengths, batch)
    check_size("attention", "the scores", (batch, heads, queries, keys))
    check_integer("attention", "offset", offset, -(2**31), 2**31 - 1)
    if not 0.0 <= dropout_p <= 1.0:
        raise ArgumentError(f"attention: dropout_p is {dropout_p!r}; allowed: 0 to 1")
    if dropout_p > 0.0 and rng is None:
        raise ArgumentError(
            "attention: rng is None; allowed with dropout_p > 0: a numpy.random.Generator"
        )


def validate_values(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None = None,
    *,
    lengths: Array | None = None,
    **settings: object,
) -> None:
    if lengths is not None:
        check_length_values("attention", lengths, k.shape[2])


def grouped(x: Float[Array, "N H *rest"], groups: int) -> Float[Array, "N G R *rest"]:
    """The heads in groups of R = H/G that stand one after another and share a key-value head."""
    batch, heads, *rest = x.shape
    return array_namespace(x).reshape(x, (batch, groups, heads // groups, *rest))


def ungrouped(x: Float[Array, "N G R *rest"]) -> Float[Array, "N H *rest"]:
    """All heads along one axis again."""
    batch, groups, heads, *rest = x.shape
    return array_namespace(x).reshape(x, (batch, groups * heads, *rest))


@operation
def forward(
    q: Float[Array, "N H T d"],
    k: Float[Array, "N G S d"],
    v: Float[Array, "N G S e"],
    bias: Float[Array, "#N #H #T #S"] | Float[Array, "#T #S"] | None = None,
    *,
    mask: Bool[Array, "#N #H #T #S"] | Bool[Array, "#T #S"] | None = None,
    lengths: Int[Array, "N"] | None = None,
    causal: bool = False,
    offset: int = 0,
    scale: float | None = None,
    dropout_p: float = 0.0,
    rng: np.random.Generator | None = None,
) -> tuple[Float[Array, "N H T e"], Cache]:
    """Scaled dot-product attention over H heads, G of them for keys and values.

    Forward:  s = scale q kᵀ + bias,  −∞ where a query may not look;  a = softmax(s) over the keys,
              y = a v
    Backward: dv = aᵀ dy,  da = dy vᵀ,  ds = a (da − Σ a da),  dbias = ds,
              dq = scale ds k,  dk = scale dsᵀ q

    A query may look at a key where all that is given agrees: `mask` is True, the key is one of its
    sequence's first `lengths`, and, if `causal`, it does not come after the query, the first query
    standing at the position `offset` of the keys. One that may look nowhere gets y = 0, and all
    gradients through it are 0. `scale` is 1/√d unless given. Dropout switches weights off after the
    softmax and scales the others by 1/(1 − dropout_p); at inference leave it at 0.

    Each of the G key-value heads serves H/G heads that stand one after another; dk and dv are sums
    over these, dbias is summed over the axes along which bias was broadcast.

    A weight of 0, as of a pair that is masked, stands for a product that is left out or is made:
    what is NaN or infinite there in q, k, v or dy may or may not reach the results.

    Shapes: q (N, H, T, d), k (N, G, S, d), v (N, G, S, d_v), y (N, H, T, d_v); bias and mask
    broadcast to (N, H, T, S); lengths (N,), integers from 0 to S. `rng` is advanced by one float32
    per weight.
    Raises ShapeError where these do not fit, ArgumentError for other lengths, for dropout_p outside
    0 to 1, or without a generator for it (lengths are looked at only if they are a NumPy array).
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5; Gulino, Neural
    Network Simplified Mathematics (2025), attention, with Aᵀ in dV, no transpose in dQ and a mask
    that is added; Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 7; Ainslie
    et al., GQA: training generalized multi-query transformer models from multi-head checkpoints
    (2023), for grouped heads; Vaswani et al., Attention is all you need (2017), section 3.2.1, for
    1/√d.
    """
    xp = array_namespace(q)
    groups = k.shape[1]
    if scale is None:
        scale = 1.0 / math.sqrt(q.shape[-1])
    s = scale * ungrouped(grouped(q, groups) @ xp.matrix_transpose(xp.expand_dims(k, axis=2)))
    if bias is not None:
        s = s + bias
    s = masked(s, mask, lengths, causal=causal, offset=offset)
    a = weights(s)
    keep, keep_scale, a_kept = None, 1.0, a
    if dropout_p > 0.0 and rng is not None:
        keep = xp.asarray(draw_mask(a.shape, dropout_p, rng), device=device(q))
        keep_scale = 1.0 / (1.0 - dropout_p) if dropout_p < 1.0 else 0.0
        a_kept = xp.where(keep, keep_scale * a, xp.zeros_like(a))
    y = ungrouped(grouped(a_kept, groups) @ xp.expand_dims(v, axis=2))
    return y, Cache(q, k, v, bias, a, keep, scale, keep_scale)


@operation
def backward(
    dy: Float[Array, "N H T e"], cache: Cache
) -> tuple[
    Float[Array, "N H T d"],
    Float[Array, "N G S d"],
    Float[Array, "N G S e"],
    Float[Array, "#N #H #T #S"] | Float[Array, "#T #S"] | None,
]:
    """dv = aᵀ dy,  da = dy vᵀ,  ds = a (da − Σ a da),  dq = scale ds k,  dk = scale dsᵀ q."""
    q, k, v, bias, a, keep, scale, keep_scale = cache
    xp = array_namespace(dy)
    groups = k.shape[1]
    da_kept = ungrouped(grouped(dy, groups) @ xp.matrix_transpose(xp.expand_dims(v, axis=2)))
    a_kept, da = a, da_kept
    if keep is not None:
        a_kept = xp.where(keep, keep_scale * a, xp.zeros_like(a))
        da = xp.where(keep, keep_scale * da_kept, xp.zeros_like(da_kept))
    dv = xp.sum(xp.matrix_transpose(grouped(a_kept, groups)) @ grouped(dy, groups), axis=2)
    expected_da = xp.sum(a * da, axis=-1, keepdims=True)
    ds = a * (da - expected_da)
    dbias = sum_to(ds, bias) if bias is not None else None
    dq = scale * ungrouped(grouped(ds, groups) @ xp.expand_dims(k, axis=2))
    dk = scale * xp.sum(xp.matrix_transpose(grouped(ds, groups)) @ grouped(q, groups), axis=2)
    return dq, dk, dv, dbias
