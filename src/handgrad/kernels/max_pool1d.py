"""Kernel of `ops.max_pool1d`: that of `max_pool2d` on images of one row."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.geometry.windows import Setting
from handgrad.kernels import max_pool2d
from handgrad.kernels.sequences import as_row, as_steps, of_row
from handgrad.kernels.spec import KernelSpec


class Cache(NamedTuple):
    """The cache of the max_pool2d kernel."""

    max_pool2d: max_pool2d.Cache


def forward(
    x: Array,
    kernel_size: Setting,
    stride: Setting | None = None,
    padding: Setting = 0,
    dilation: Setting = 1,
) -> tuple[Array, Cache]:
    y, cache = max_pool2d.forward(
        as_row(x),
        of_row(kernel_size, 1),
        None if stride is None else of_row(stride, 1),
        of_row(padding, 0),
        of_row(dilation, 1),
    )
    return y[:, :, 0], Cache(cache)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    at_x = None if out is None else out[0]
    return as_steps(max_pool2d.backward(as_row(dy), cache.max_pool2d, (as_row(at_x),)), at_x)


SPEC: Final = KernelSpec("max_pool1d", forward, backward, capturable=True)
