"""Kernel of `models.decoder_loop`: a few sequences at a time go through all steps on one thread."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.kernels import dense, native
from handgrad.kernels.memory import empty, indices

assert native is not None
_forward, _backward = native.decoder_loop_forward, native.decoder_loop_backward

#: In the order of core/decoder_scores.h and core/decoder_cells.h.
_SCORES: Final = ("additive", "cosine", "dot")
_CELLS: Final = ("sigmoid", "tanh", "gru")


class Cache(NamedTuple):
    """The inputs, and of every step its product, weights and state, (N, T, ...).

    weight is [W_s; W_hh], bias [0; b_hh], and step their product with s_{j−1}, all without the part
    of W_s where the score has none; a holds the gates where the cell has some. tanh of the additive
    score is computed again: it would be N · T · S · A values.
    """

    keys: Array
    values: Array
    lengths: Array | None
    weight: Array
    bias: Array
    v: Array | None
    s0: Array
    a: Array
    step: Array
    weights: Array
    y: Array
    codes: tuple[int, int]

    @property
    def alpha(self) -> Array:
        """The weights as the reference keeps them, (T, N, S)."""
        return self.weights.transpose(1, 0, 2)


def forward(
    score: Any, cell: Any, a: Array, keys: Array, values: Array, s0: Array, lengths: Array | None
) -> tuple[Array, Cache]:
    batch, steps, gates = a.shape
    weight, bias, v = cell.weight_hh, cell.bias_hh, None
    if score.kind == "additive":
        v = score.v
        size = len(v) + gates
        weight = np.concatenate(
            (score.weight_s, weight), out=empty((size, s0.shape[1]), s0.dtype), axis=0
        )
        bias = np.concatenate((np.zeros_like(v), bias))
    inputs = empty(a.shape, a.dtype)
    inputs[...] = a
    step = empty((batch, steps, len(bias)), a.dtype)
    weights = empty((batch, steps, keys.shape[1]), a.dtype)
    y = empty((batch, steps, s0.shape[1]), a.dtype)
    codes = _SCORES.index(score.kind), _CELLS.index(cell.kind)
    if lengths is not None:
        lengths = indices(lengths)
    _forward(keys, values, weight, bias, v, s0, lengths, inputs, step, weights, y, *codes)
    return y, Cache(keys, values, lengths, weight, bias, v, s0, inputs, step, weights, y, codes)


def backward(dy: Array, cache: Cache) -> tuple[Array, Array, Array, Array, dict[str, Array]]:
    keys, values, lengths, weight, bias, v, s0, a, step, weights, y, codes = cache
    da, dstep, dkeys, dvalues, ds0 = (empty(x.shape, x.dtype) for x in (a, step, keys, values, s0))
    dv = None if v is None else empty(v.shape, v.dtype)
    _backward(
        *(dy, keys, values, weight, v, s0, lengths, a, step, weights, y),
        *(da, dstep, dkeys, dvalues, ds0, dv, *codes),
    )
    before = empty(y.shape, y.dtype)
    before[:, :1] = s0[:, None]
    before[:, 1:] = y[:, :-1]
    product = dense.Cache(before, weight, bias, step, 0, 0.0)
    _, dweight, dbias = dense.backward(dstep, product, out=(SKIP, None, None))
    assert dweight is not None
    assert dbias is not None
    size = 0 if v is None else len(v)
    found = {"cell.weight_hh": dweight[size:], "cell.bias_hh": dbias[size:]}
    if dv is not None:
        found |= {"score.weight_s": dweight[:size], "score.v": dv}
    return da, dkeys, dvalues, ds0, found
