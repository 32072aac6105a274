"""Kernel of `ops.rnn`: each thread takes some sequences through all steps."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty
from handgrad.kernels.recurrence import Run, checked_lengths, output_buffers
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.rnn_forward, native.rnn_backward


class Cache(NamedTuple):
    """The inputs, and y for h; f′ follows from h.

    As in the reference's cache, `h` is (N, T + 1, H) in running order; it is made when asked for.
    """

    x: Array
    weight_ih: Array
    weight_hh: Array
    h0: Array | None
    lengths: Array | None
    y: Array
    has_bias_ih: bool
    has_bias_hh: bool
    is_relu: bool
    reverse: bool

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
    nonlinearity: str = "tanh",
    reverse: bool = False,
) -> tuple[tuple[Array, Array], Cache]:
    batch, steps = x.shape[:2]
    hidden = weight_hh.shape[1]
    lengths, _ = checked_lengths(lengths, batch, steps)
    is_relu = nonlinearity == "relu"
    y, h_n = empty((batch, steps, hidden), x.dtype), empty((batch, hidden), x.dtype)
    weights = (weight_ih, weight_hh, bias_ih, bias_hh)
    _forward(x, *weights, h0, lengths, is_relu, reverse, y, h_n)
    has_ih, has_hh = bias_ih is not None, bias_hh is not None
    return (y, h_n), Cache(
        x, weight_ih, weight_hh, h0, lengths, y, has_ih, has_hh, is_relu, reverse
    )


def backward(doutputs: Any, cache: Cache, out: Any = None) -> tuple[Array | None, ...]:
    dy, dh_n = doutputs
    x, weight_ih, weight_hh, h0, lengths, y, has_ih, has_hh, is_relu, reverse = cache
    gradients = output_buffers(out, x, weight_ih, weight_hh, has_ih, has_hh, h0)
    _backward(dy, dh_n, x, weight_ih, weight_hh, h0, lengths, is_relu, reverse, y, *gradients)
    return gradients


SPEC: Final = KernelSpec("rnn", forward, backward, forward_capturable=True)
