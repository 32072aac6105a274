"""Kernel of `ops.conv_transpose2d`: the convolution kernels with image and output swapped."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.geometry.windows import Setting, per_axis, unpadded_size, where_it_counts
from handgrad.kernels import native
from handgrad.kernels.memory import empty, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.conv_transpose2d_forward, native.conv_transpose2d_backward


class Cache(NamedTuple):
    """x and the weight, for the products of backward."""

    x: Array
    weight: Array
    bias: Array | None
    sizes: tuple[int, ...]


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
    strides, paddings, dilations = per_axis(stride, 2), per_axis(padding, 2), per_axis(dilation, 2)
    batch, filters, *size = x.shape
    kernel = weight.shape[2:]
    channels = weight.shape[1] * groups
    unpadded = unpadded_size(size, kernel, strides, per_axis(output_padding, 2), dilations)
    output_size = tuple(n - 2 * p for n, p in zip(unpadded, paddings, strict=True))
    image = (batch, channels, *output_size)
    strides, dilations = where_it_counts(strides, size), where_it_counts(dilations, kernel)
    sizes = (*image, filters, *kernel, *strides, *paddings, *dilations, groups, *size)
    y = empty(image, x.dtype)
    _forward(x, weight, bias, y, sizes)
    return y, Cache(x, weight, bias, sizes)


def backward(
    dy: Array, cache: Cache, out: Any = None
) -> tuple[Array | None, Array | None, Array | None]:
    x, weight, bias, sizes = cache
    at_x, at_weight, at_bias = out or (None, None, None)
    dx = output_buffer(at_x, x)
    dweight = output_buffer(at_weight, weight)
    dbias = None if bias is None else output_buffer(at_bias, bias)
    _backward(dy, x, weight, dx, dweight, dbias, sizes)
    return dx, dweight, dbias


SPEC: Final = KernelSpec("conv_transpose2d", forward, backward, capturable=True)
