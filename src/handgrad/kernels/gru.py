"""Kernel of `ops.gru`: each thread takes some sequences through all steps."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty
from handgrad.kernels.recurrence import Run, checked_lengths, output_buffers
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.gru_forward, native.gru_backward


class Cache(NamedTuple):
    """The inputs, y for h, and r, z, n and u of every step that counts.

    As in the reference's cache, `gates` and `h` are (N, T, 4H) and (N, T + 1, H) in running order,
    with 0 for the gates of padding; they are made when asked for.
    """

    x: Array
    weight_ih: Array
    weight_hh: Array
    h0: Array | None
    lengths: Array | None
    y: Array
    kept_gates: Array
    has_bias_ih: bool
    has_bias_hh: bool
    reverse: bool

    @property
    def gates(self) -> Array:
        return Run(self.x, self.lengths, self.reverse).kept(self.kept_gates)

    @property
    def h(self) -> Array:
        return Run(self.x, self.lengths, self.reverse).states_of(self.y, self.h0)


def forward(
    x: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None = None,
    bias_hh: Array | None = None,
    h0: Array | None = None,
    *,
    lengths: Array | None = None,
    reverse: bool = False,
) -> tuple[tuple[Array, Array], Cache]:
    batch, steps = x.shape[:2]
    hidden = weight_hh.shape[1]
    lengths, rows = checked_lengths(lengths, batch, steps)
    y, h_n = empty((batch, steps, hidden), x.dtype), empty((batch, hidden), x.dtype)
    gates = empty((rows, 4 * hidden), x.dtype)
    _forward(x, weight_ih, weight_hh, bias_ih, bias_hh, h0, lengths, reverse, y, h_n, gates)
    has_ih, has_hh = bias_ih is not None, bias_hh is not None
    return (y, h_n), Cache(x, weight_ih, weight_hh, h0, lengths, y, gates, has_ih, has_hh, reverse)


def backward(doutputs: Any, cache: Cache, out: Any = None) -> tuple[Array | None, ...]:
    dy, dh_n = doutputs
    x, weight_ih, weight_hh, h0, lengths, y, gates, has_ih, has_hh, reverse = cache
    gradients = output_buffers(out, x, weight_ih, weight_hh, has_ih, has_hh, h0)
    _backward(dy, dh_n, x, weight_ih, weight_hh, h0, lengths, reverse, y, gates, *gradients)
    return gradients


SPEC: Final = KernelSpec("gru", forward, backward, forward_capturable=True)
