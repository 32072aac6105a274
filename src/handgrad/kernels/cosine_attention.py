"""Kernel of `ops.cosine_attention`: scores, weights and sums of a state in one go."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, empty_like, indices, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.cosine_attention_forward, native.cosine_attention_backward


class Cache(NamedTuple):
    """h as the values, both states at length 1 with what brought them there, and the weights α."""

    h: Array
    s_hat: Array
    h_hat: Array
    inv_s: Array
    inv_h: Array
    alpha: Array


def forward(
    s: Array,
    h: Array,
    *,
    mask: Array | None = None,
    lengths: Array | None = None,
    eps: float = 1e-8,
) -> tuple[Array, Cache]:
    alpha = empty((*s.shape[:2], h.shape[1]), s.dtype)
    if mask is not None:
        mask = np.broadcast_to(mask, alpha.shape)
    lengths = None if lengths is None else indices(lengths)
    cache = Cache(
        h,
        empty_like(s),
        empty(h.shape, s.dtype),
        empty((*s.shape[:2], 1), s.dtype),
        empty((*h.shape[:2], 1), s.dtype),
        alpha,
    )
    c = empty_like(s)
    _forward(s, h, mask, lengths, eps, *cache[1:], c)
    return c, cache


def backward(dc: Array, cache: Cache, out: Any = None) -> tuple[Array | None, Array | None]:
    at_s, at_h = out or (None, None)
    ds, dh = output_buffer(at_s, cache.s_hat), output_buffer(at_h, cache.h)
    if ds is not None or dh is not None:
        # Each is a by-product of the other: what is not wanted goes to memory for the call.
        _backward(
            dc,
            *cache,
            empty(cache.s_hat.shape, dc.dtype) if ds is None else ds,
            empty(cache.h.shape, dc.dtype) if dh is None else dh,
        )
    return ds, dh


SPEC: Final = KernelSpec("cosine_attention", forward, backward)
