"""Kernel of `ops.avg_pool1d`: that of `avg_pool2d` on images of one row."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.geometry.windows import Setting
from handgrad.kernels import avg_pool2d
from handgrad.kernels.sequences import as_row, as_steps, of_row
from handgrad.kernels.spec import KernelSpec


class Cache(NamedTuple):
    """The cache of the avg_pool2d kernel."""

    avg_pool2d: avg_pool2d.Cache


def forward(
    x: Array,
    kernel_size: Setting | str,
    stride: Setting | None = None,
    padding: Setting = 0,
    *,
    count_include_pad: bool = True,
) -> tuple[Array, Cache]:
    y, cache = avg_pool2d.forward(
        as_row(x),
        kernel_size if isinstance(kernel_size, str) else of_row(kernel_size, 1),
        None if stride is None else of_row(stride, 1),
        of_row(padding, 0),
        count_include_pad=count_include_pad,
    )
    return y[:, :, 0], Cache(cache)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    at_x = None if out is None else out[0]
    return as_steps(avg_pool2d.backward(as_row(dy), cache.avg_pool2d, (as_row(at_x),)), at_x)


SPEC: Final = KernelSpec("avg_pool1d", forward, backward, capturable=True)
