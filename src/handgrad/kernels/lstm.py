"""Kernel of `ops.lstm`: each thread takes some sequences through all steps."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.dispatch import reference_of
from handgrad.kernels import native
from handgrad.kernels.memory import empty
from handgrad.kernels.recurrence import Run, checked_lengths, output_buffers
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.lstm_forward, native.lstm_backward


class Cache(NamedTuple):
    """The inputs, y for h, and i, f, g, o and c of every step that counts; tanh c comes again.

    As in the reference's cache, `gates`, `h` and `c` are (N, T, 4H), (N, T + 1, P) and
    (N, T + 1, H) in running order, with 0 for the gates of padding; they are made when asked for.
    """

    x: Array
    weight_ih: Array
    weight_hh: Array
    weight_hr: Array | None
    h0: Array | None
    c0: Array | None
    lengths: Array | None
    y: Array
    kept_gates: Array
    kept_c: Array
    has_bias_ih: bool
    has_bias_hh: bool
    reverse: bool

    def as_reference(self) -> Any:
        """The cache that the reference would have kept."""
        run = Run(self.x, self.lengths, self.reverse)
        return reference_of("lstm").Cache(
            run.inputs(self.x),
            self.weight_ih,
            self.weight_hh,
            self.weight_hr,
            run.states_of(self.y, self.h0),
            run.states(run.kept(self.kept_c), self.c0),
            run.kept(self.kept_gates),
            run.active,
            self.has_bias_ih,
            self.has_bias_hh,
            self.h0 is not None,
            self.c0 is not None,
            self.reverse,
        )

    @property
    def gates(self) -> Array:
        return self.as_reference().gates

    @property
    def h(self) -> Array:
        return self.as_reference().h

    @property
    def c(self) -> Array:
        return self.as_reference().c


def forward(
    x: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None = None,
    bias_hh: Array | None = None,
    weight_hr: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    *,
    lengths: Array | None = None,
    reverse: bool = False,
) -> tuple[tuple[Array, tuple[Array, Array]], Cache]:
    batch, steps = x.shape[:2]
    gates, size = weight_hh.shape
    lengths, rows = checked_lengths(lengths, batch, steps)
    y = empty((batch, steps, size), x.dtype)
    h_n, c_n = empty((batch, size), x.dtype), empty((batch, gates // 4), x.dtype)
    kept_gates, kept_c = empty((rows, gates), x.dtype), empty((rows, gates // 4), x.dtype)
    weights = (weight_ih, weight_hh, bias_ih, bias_hh, weight_hr)
    _forward(x, *weights, h0, c0, lengths, reverse, y, h_n, c_n, kept_gates, kept_c)
    cache = Cache(
        x,
        weight_ih,
        weight_hh,
        weight_hr,
        h0,
        c0,
        lengths,
        y,
        kept_gates,
        kept_c,
        bias_ih is not None,
        bias_hh is not None,
        reverse,
    )
    return (y, (h_n, c_n)), cache


def backward(doutputs: Any, cache: Cache, out: Any = None) -> tuple[Array | None, ...]:
    dy, (dh_n, dc_n) = doutputs
    x, weight_ih, weight_hh, weight_hr, h0, c0, lengths, y, gates, c, has_ih, has_hh, reverse = (
        cache
    )
    gradients = output_buffers(out, x, weight_ih, weight_hh, has_ih, has_hh, weight_hr, h0, c0)
    inputs = (x, weight_ih, weight_hh, weight_hr, h0, c0, lengths, reverse, y, gates, c)
    _backward(dy, dh_n, dc_n, *inputs, *gradients)
    return gradients


SPEC: Final = KernelSpec("lstm", forward, backward, forward_capturable=True)
