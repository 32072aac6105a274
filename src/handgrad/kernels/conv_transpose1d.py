"""Kernel of `ops.conv_transpose1d`: that of `conv_transpose2d` on images of one row."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.geometry.windows import Setting
from handgrad.kernels import conv_transpose2d
from handgrad.kernels.sequences import as_row, as_steps, of_row
from handgrad.kernels.spec import KernelSpec


class Cache(NamedTuple):
    """The cache of the conv_transpose2d kernel."""

    conv_transpose2d: conv_transpose2d.Cache


def forward(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Setting = 1,
    padding: Setting = 0,
    output_padding: Setting = 0,
    groups: int = 1,
    dilation: Setting = 1,
) -> tuple[Array, Cache]:
    y, cache = conv_transpose2d.forward(
        as_row(x),
        as_row(weight),
        bias,
        stride=of_row(stride, 1),
        padding=of_row(padding, 0),
        output_padding=of_row(output_padding, 0),
        groups=groups,
        dilation=of_row(dilation, 1),
    )
    return y[:, :, 0], Cache(cache)


def backward(
    dy: Array, cache: Cache, out: Any = None
) -> tuple[Array | None, Array | None, Array | None]:
    at_x, at_weight, at_bias = out or (None, None, None)
    rows = (as_row(at_x), as_row(at_weight), at_bias)
    dx, dweight, dbias = conv_transpose2d.backward(as_row(dy), cache.conv_transpose2d, rows)
    return as_steps(dx, at_x), as_steps(dweight, at_weight), dbias


SPEC: Final = KernelSpec("conv_transpose1d", forward, backward, capturable=True)
