"""Kernel of `models.decoder_loop`: a few sequences at a time go through all steps on one thread."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.kernels import dense, native
from handgrad.kernels.memory import empty, indices
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.decoder_loop_forward, native.decoder_loop_backward

#: In the order of core/recurrent/decoder_scores.h and core/recurrent/decoder_cells.h.
_SCORES: Final = ("additive", "cosine", "dot")
_CELLS: Final = ("sigmoid", "tanh", "gru")


class Cache(NamedTuple):
    """The inputs, and of every step, time first, what backward needs.

    states (T + 1, N, H) from s_0 on, and alpha (T, N, S). weight is [W_s; W_hh], and step
    (T, N, ...) its product with s_{j−1}, without the part of W_s where the score has none; gates
    are those of a cell that has some. tanh of the additive score is computed again: it would be
    N · T · S · A values.
    """

    keys: Array
    values: Array
    lengths: Array | None
    weight: Array
    v: Array | None
    states: Array
    step: Array
    alpha: Array
    gates: Array | None
    codes: tuple[int, int]


def forward(
    score: Any, cell: Any, a: Array, keys: Array, values: Array, s0: Array, lengths: Array | None
) -> tuple[Array, Cache]:
    """As the reference; a, keys and values may be views whose last axis is in one piece."""
    batch, steps, gates = a.shape
    hidden = s0.shape[1]
    weight, bias, v = cell.weight_hh, cell.bias_hh, None
    if score.kind == "additive":
        v = score.v
        size = len(v) + gates
        weight = np.concatenate((score.weight_s, weight), out=empty((size, hidden), a.dtype))
        bias = np.concatenate((np.zeros_like(v), bias))
    states = empty((steps + 1, batch, hidden), a.dtype)
    step = empty((steps, batch, len(bias)), a.dtype)
    alpha = empty((steps, batch, keys.shape[1]), a.dtype)
    kept = empty((steps, batch, gates), a.dtype) if gates > hidden else None
    y = empty((batch, steps, hidden), a.dtype)
    codes = _SCORES.index(score.kind), _CELLS.index(cell.kind)
    if lengths is not None:
        lengths = indices(lengths)
    _forward(a, keys, values, weight, bias, v, s0, lengths, states, step, alpha, kept, y, *codes)
    return y, Cache(keys, values, lengths, weight, v, states, step, alpha, kept, codes)


def backward(dy: Array, cache: Cache) -> tuple[Array, Array, Array, dict[str, Array]]:
    keys, values, lengths, weight, v, states, step, alpha, gates, codes = cache
    batch, count, size = values.shape
    dtype = dy.dtype
    da = empty((*dy.shape[:2], size), dtype)
    dstep = empty(step.shape, dtype)
    dmemory = empty((batch, count, keys.shape[2] + size), dtype)
    ds0 = empty(states.shape[1:], dtype)
    dbias = empty((2, size), dtype)
    dv = None if v is None else empty(v.shape, dtype)
    _backward(
        *(dy, keys, values, weight, v, lengths, states, step, alpha, gates),
        *(da, dstep, dmemory, ds0, dbias, dv, *codes),
    )
    product = dense.Cache(states[:-1], weight, None, step, 0, 0.0)
    _, dweight, _ = dense.backward(dstep, product, out=(SKIP, None, None))
    assert dweight is not None
    found = {"cell.bias_ih": dbias[0], "cell.bias_hh": dbias[1]}
    found["cell.weight_hh"] = dweight[-size:]
    if dv is not None:
        found |= {"score.weight_s": dweight[:-size], "score.v": dv}
    return da, dmemory, ds0, found


SPEC: Final = KernelSpec("decoder_loop", forward, backward)
