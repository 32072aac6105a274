"""Kernel of `ops.additive_attention`: its products by the tiled product, the rest in one go."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.matmul import product
from handgrad.kernels.memory import empty, indices, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.additive_attention_forward, native.additive_attention_backward


class Cache(NamedTuple):
    """The inputs, the hidden values u of the score's network, 0 where masked, and the weights α."""

    s: Array
    h: Array
    weight_s: Array
    weight_h: Array
    v: Array
    u: Array
    alpha: Array


def _rows(x: Array) -> Array:
    """The steps of all sequences, one below the other."""
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])


def forward(
    s: Array,
    h: Array,
    weight_s: Array,
    weight_h: Array,
    v: Array,
    *,
    mask: Array | None = None,
    lengths: Array | None = None,
) -> tuple[Array, Cache]:
    pairs = (*s.shape[:2], h.shape[1])
    a_s, a_h = product(_rows(s), weight_s.T), product(_rows(h), weight_h.T)
    u = empty((*pairs, v.size), s.dtype)
    alpha = empty(pairs, s.dtype)
    c = empty((*s.shape[:2], h.shape[2]), s.dtype)
    if mask is not None:
        mask = np.broadcast_to(mask, pairs)
    lengths = None if lengths is None else indices(lengths)
    _forward(a_s, a_h, v, h, mask, lengths, u, alpha, c)
    return c, Cache(s, h, weight_s, weight_h, v, u, alpha)


def backward(dc: Array, cache: Cache, out: Any = None) -> tuple[Array | None, ...]:
    s, h, weight_s, weight_h, v, u, alpha = cache
    out = out or (None,) * 5
    ds, dh, dweight_s, dweight_h, dv = map(output_buffer, out, cache[:5])
    size = v.size
    da_s = empty((s.shape[0] * s.shape[1], size), s.dtype)
    da_h = empty((h.shape[0] * h.shape[1], size), s.dtype)
    dv_parts = empty((s.shape[0], size), s.dtype)
    through_sum = empty(h.shape, s.dtype) if dh is None else dh
    _backward(dc, v, h, u, alpha, da_s, da_h, through_sum, dv_parts)
    if ds is not None:
        product(da_s, weight_s, _rows(ds))
    if dh is not None:
        dh += product(da_h, weight_h).reshape(h.shape)
    if dweight_s is not None:
        product(da_s.T, _rows(s), dweight_s)
    if dweight_h is not None:
        product(da_h.T, _rows(h), dweight_h)
    if dv is not None:
        np.sum(dv_parts, axis=0, out=dv)
    return ds, dh, dweight_s, dweight_h, dv


SPEC: Final = KernelSpec("additive_attention", forward, backward)
