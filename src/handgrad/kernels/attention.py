"""Kernel of `ops.attention`: the matrix of weights is never stored, see core/attention/attention.h.

q, k, v and dy are read through their strides, and y, dq, dk and dv lie in memory as q, k and v do.
Heads are mostly views, (N, T, H, d) seen as (N, H, T, d), of what projections make and take.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import SKIP, reference_of
from handgrad.geometry.axes import sum_to
from handgrad.kernels import invalidate_capture, native
from handgrad.kernels.memory import empty, empty_as, indices, output_buffer
from handgrad.kernels.spec import ROWS, KernelSpec

assert native is not None
_forward, _backward = native.attention_forward, native.attention_backward


class Cache(NamedTuple):
    """The inputs, y, and log Σ exp(score) of every query, from which backward makes the weights.

    `keep` says which weights dropout let stay.
    """

    q: Array
    k: Array
    v: Array
    bias: Array | None
    mask: Array | None
    lengths: Array | None
    keep: Array | None
    keep_scale: float
    scale: float
    causal: bool
    offset: int
    y: Array
    log_sums: Array

    @property
    def a(self) -> Array:
        """The weights before their dropout, (N, H, T, S): computed here, to be looked at."""
        _, cache = reference_of("attention").forward.reference(
            self.q,
            self.k,
            self.v,
            self.bias,
            mask=self.mask,
            lengths=self.lengths,
            causal=self.causal,
            offset=self.offset,
            scale=self.scale,
        )
        return cache.a


def _pairs(array: Array | None, shape: tuple[int, ...]) -> Array | None:
    """One value for every pair of query and key, without a copy."""
    return None if array is None else np.broadcast_to(array, shape)


def forward(
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
) -> tuple[Array, Cache]:
    rows, pairs = q.shape[:3], (*q.shape[:3], k.shape[2])
    if scale is None:
        scale = 1.0 / math.sqrt(q.shape[-1])
    lengths = None if lengths is None else indices(lengths)
    if mask is not None:  # the caller may change its own before backward
        invalidate_capture("a mask was copied")
        mask = np.array(mask)
    keep, keep_scale = None, 1.0
    if dropout_p > 0.0 and rng is not None:
        invalidate_capture("random numbers were drawn")
        drawn = empty(pairs, np.float32)
        rng.random(dtype=np.float32, out=drawn)
        keep = np.greater_equal(drawn, dropout_p, out=empty(pairs, np.bool_))
        keep_scale = 1.0 / (1.0 - dropout_p) if dropout_p < 1.0 else 0.0
    y = empty_as(q, (*rows, v.shape[3]))
    log_sums = empty(rows, q.dtype)
    settings = (keep, keep_scale, scale, causal, offset, y, log_sums)
    _forward(q, k, v, _pairs(bias, pairs), _pairs(mask, pairs), lengths, *settings)
    return y, Cache(q, k, v, bias, mask, lengths, *settings)


def backward(
    dy: Array, cache: Cache, out: Any = None
) -> tuple[Array | None, Array | None, Array | None, Array | None]:
    q, k, v, bias, mask, lengths, *settings = cache
    *inputs, at_bias = out or (None, None, None, None)
    dq, dk, dv = (
        empty_as(like, like.shape) if wanted is None else output_buffer(wanted, like)
        for wanted, like in zip(inputs, (q, k, v), strict=True)
    )
    pairs = (*q.shape[:3], k.shape[2])
    dscores = None
    if bias is not None and at_bias is not SKIP:
        dscores = empty(pairs, q.dtype)
        dscores.fill(0.0)
    _backward(
        dy,
        q,
        k,
        v,
        _pairs(bias, pairs),
        _pairs(mask, pairs),
        lengths,
        *settings,
        dq,
        dk,
        dv,
        dscores,
    )
    if dscores is None or bias is None:
        return dq, dk, dv, None
    dbias = sum_to(dscores, bias)
    if at_bias is None:
        return dq, dk, dv, dbias
    dbias_out = output_buffer(at_bias, bias)
    assert dbias_out is not None
    dbias_out[...] = dbias
    return dq, dk, dv, dbias_out


SPEC: Final = KernelSpec("attention", forward, backward, layout=ROWS, forward_capturable=True)
