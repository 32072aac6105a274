"""Kernel of `ops.conv2d`: the tiled product on gathered patches, image by image."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.geometry.windows import (
    Setting,
    once_per_shape,
    output_size,
    per_axis,
    where_it_counts,
)
from handgrad.kernels import native
from handgrad.kernels.activation import code_of, keeps_input
from handgrad.kernels.memory import empty, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.conv2d_forward, native.conv2d_backward


class Cache(NamedTuple):
    """x and the weight for the products; `saved` is y, or a where the derivative needs it, and None
    where there is no activation."""

    x: Array
    weight: Array
    bias: Array | None
    saved: Array | None
    sizes: tuple[int, ...]
    activation: int


@once_per_shape
def sizes_of(
    x: tuple[int, ...],
    weight: tuple[int, ...],
    stride: Setting,
    padding: Setting,
    dilation: Setting,
    groups: int,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Rows and columns of y, and all sizes as native code lists them; x and weight are shapes."""
    strides, paddings, dilations = per_axis(stride, 2), per_axis(padding, 2), per_axis(dilation, 2)
    kernel = weight[2:]
    size = output_size(x[2:], kernel, strides, paddings, dilations)
    strides, dilations = where_it_counts(strides, size), where_it_counts(dilations, kernel)
    sizes = (*x, weight[0], *kernel, *strides, *paddings, *dilations, groups, *size)
    return size, sizes


def forward(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Setting = 1,
    padding: Setting = 0,
    dilation: Setting = 1,
    groups: int = 1,
    activation: str = "identity",
) -> tuple[Array, Cache]:
    size, sizes = sizes_of(x.shape, weight.shape, stride, padding, dilation, groups)
    code = code_of(activation)
    y = empty((x.shape[0], weight.shape[0], *size), x.dtype)
    a = empty(y.shape, y.dtype) if keeps_input(code) else None
    _forward(x, weight, bias, y, a, sizes, code, 0.01)
    saved = None if code == code_of("identity") else y if a is None else a
    return y, Cache(x, weight, bias, saved, sizes, code)


def backward(
    dy: Array, cache: Cache, out: Any = None
) -> tuple[Array | None, Array | None, Array | None]:
    x, weight, bias, saved, sizes, code = cache
    at_x, at_weight, at_bias = out or (None, None, None)
    dx = output_buffer(at_x, x)
    dweight = output_buffer(at_weight, weight)
    dbias = None if bias is None else output_buffer(at_bias, bias)
    _backward(dy, x, weight, saved, dx, dweight, dbias, sizes, code, 0.01)
    return dx, dweight, dbias


SPEC: Final = KernelSpec("conv2d", forward, backward, capturable=True)
