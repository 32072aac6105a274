"""Kernel of `ops.leaky_rnn`: each thread takes some sequences through all steps."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, output_buffer
from handgrad.kernels.recurrence import Run, checked_lengths
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.leaky_rnn_forward, native.leaky_rnn_backward


class Cache(NamedTuple):
    """The inputs and g_t = tanh a_t of every step that counts; no gradient needs the states.

    `rates` (2, H) are α and 1 − α, which has more digits than can be had from an α near 1. As in
    the reference's cache, `g` is (N, T, H) in running order, with 0 for padding; it is made when
    asked for.
    """

    x: Array
    weight_ih: Array
    rates: Array
    h0: Array | None
    lengths: Array | None
    kept_g: Array
    has_bias: bool
    reverse: bool

    @property
    def g(self) -> Array:
        return Run(self.x, self.lengths, self.reverse).kept(self.kept_g)


def forward(
    x: Array,
    weight_ih: Array,
    bias_ih: Array | None = None,
    h0: Array | None = None,
    *,
    alpha: float | Array,
    lengths: Array | None = None,
    reverse: bool = False,
) -> tuple[tuple[Array, Array], Cache]:
    batch, steps = x.shape[:2]
    hidden = weight_ih.shape[0]
    lengths, rows = checked_lengths(lengths, batch, steps)
    alpha = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (hidden,))
    if not np.all((alpha >= 0.0) & (alpha <= 1.0)):
        raise IndexError("alpha")
    rates = np.stack((alpha, 1.0 - alpha)).astype(x.dtype)
    y, h_n = empty((batch, steps, hidden), x.dtype), empty((batch, hidden), x.dtype)
    g = empty((rows, hidden), x.dtype)
    _forward(x, weight_ih, bias_ih, h0, rates, lengths, reverse, y, h_n, g)
    return (y, h_n), Cache(x, weight_ih, rates, h0, lengths, g, bias_ih is not None, reverse)


def backward(doutputs: Any, cache: Cache, out: Any = None) -> tuple[Array | None, ...]:
    dy, dh_n = doutputs
    x, weight_ih, rates, h0, lengths, g, has_bias, reverse = cache
    at = out or (None,) * 4
    gradients = (
        output_buffer(at[0], x),
        output_buffer(at[1], weight_ih),
        output_buffer(at[2], x, (weight_ih.shape[0],)) if has_bias else None,
        None if h0 is None else output_buffer(at[3], h0),
    )
    _backward(dy, dh_n, x, weight_ih, rates, lengths, reverse, g, *gradients)
    return gradients


SPEC: Final = KernelSpec("leaky_rnn", forward, backward)
