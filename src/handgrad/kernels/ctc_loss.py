"""Kernel of `ops.ctc_loss`: each thread takes some examples through all steps."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, indices, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.ctc_loss_forward, native.ctc_loss_backward


class Cache(NamedTuple):
    """x, targets and lengths, log α of every step in float64, with two −∞ before its states, of
    every step max x and log Σ exp(x − max x), and log p(l) of every example.

    log p is computed again, and β only backward. `options` are the rest of native's arguments.
    """

    x: Array
    targets: Array
    input_lengths: Array | None
    target_lengths: Array | None
    log_alpha: Array
    normalizers: Array
    log_p: Array
    options: tuple[int, bool, bool]


def forward(
    x: Array,
    targets: Array,
    input_lengths: Array | None = None,
    target_lengths: Array | None = None,
    *,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Array, Cache]:
    batch, steps = x.shape[:2]
    own = (
        indices(targets),
        None if input_lengths is None else indices(input_lengths),
        None if target_lengths is None else indices(target_lengths),
    )
    log_alpha = empty((batch, steps, 2 * targets.shape[1] + 3), np.float64)
    normalizers = empty((batch, steps, 2), x.dtype)
    log_p = empty((batch,), np.float64)
    losses, loss = empty((batch,), x.dtype), empty((), x.dtype)
    options = blank, reduction == "mean", zero_infinity
    _forward(x, *own, log_alpha, normalizers, log_p, losses, loss, *options)
    cache = Cache(x, *own, log_alpha, normalizers, log_p, options)
    return losses if reduction == "none" else loss, cache


def backward(dloss: Array, cache: Cache, out: Any = None) -> Array | None:
    *kept, options = cache
    dx = output_buffer(None if out is None else out[0], cache.x)
    if dx is not None:
        _backward(dloss, *kept, dx, *options)
    return dx


SPEC: Final = KernelSpec("ctc_loss", forward, backward, capturable=True)
