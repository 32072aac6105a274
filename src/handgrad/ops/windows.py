"""Shared parts of convolution and pooling: windows of a padded input, and their transpose.

The last axes of an array are its positions: one axis in 1-D, rows and columns in 2-D. A kernel
offset is one position in a kernel, (m,) or (m, n). With stride s and dilation d, the output
positions read the padded input V at V[m·d], V[m·d + s], V[m·d + 2s], ... for the offset m: a
strided slice, `window`. So c and g of Yamanishi (6) to (8) are sums over kernel offsets of products
of whole arrays. In h, his (9), the condition under the sum, only those (j, m) with j·s + m·d = the
position, is `scatter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np
from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.windows import (
    Setting,
    once_per_shape,
    output_size,
    per_axis,
    unpadded_size,
    where_it_counts,
)
from handgrad.ops.activation import check_activation
from handgrad.ops.arguments import check_size, check_vector

#: Settings and planes stay below it, so that a position in a plane fits into 32 bits.
_LIMIT: Final = 2**31
_INTEGERS: Final = (int, np.integer)


def kernel_offsets(kernel: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every offset of the kernel, in row-major order."""
    return product(*(range(k) for k in kernel))


def window(
    v: Array,
    offset: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    size: Sequence[int],
) -> Array:
    """The values that the kernel offset reads for `size` output positions: V[..., m·d :: s]."""
    slices = (
        slice(m * d, m * d + s * (n - 1) + 1, s)
        for m, s, d, n in zip(offset, stride, dilation, size, strict=True)
    )
    return v[(..., *slices)]


def scatter(
    values: Array,
    offset: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    input_size: Sequence[int],
) -> Array:
    """The transpose of `window`: the values at V[..., m·d :: s], and 0 elsewhere."""
    first_axis = len(values.shape) - len(offset)
    for i, (m, s, d, n) in enumerate(zip(offset, stride, dilation, input_size, strict=True)):
        values = _scatter_axis(values, first_axis + i, m * d, s, n)
    return values


def _scatter_axis(values: Array, axis: int, start: int, stride: int, input_size: int) -> Array:
    """0 before `start`, the values `stride` apart, and 0 behind them, along one axis."""
    xp = array_namespace(values)
    before, size, after = values.shape[:axis], values.shape[axis], values.shape[axis + 1 :]
    (stride,) = where_it_counts((stride,), (size,))
    gaps = _full((*before, size, stride - 1, *after), 0.0, values)
    apart = xp.concat((xp.expand_dims(values, axis=axis + 1), gaps), axis=axis + 1)
    apart = xp.reshape(apart, (*before, size * stride, *after))
    length = min(size * stride, input_size - start)
    apart = apart[(*[slice(None)] * axis, slice(length), ...)]
    front = _full((*before, start, *after), 0.0, values)
    behind = _full((*before, input_size - start - length, *after), 0.0, values)
    return xp.concat((front, apart, behind), axis=axis)


def pad(x: Array, padding: Sequence[int], value: float = 0.0) -> Array:
    """`value` on both sides of every axis of positions."""
    xp = array_namespace(x)
    first_axis = len(x.shape) - len(padding)
    for axis, p in enumerate(padding, first_axis):
        edge = _full((*x.shape[:axis], p, *x.shape[axis + 1 :]), value, x)
        x = xp.concat((edge, x, edge), axis=axis)
    return x


def crop(v: Array, padding: Sequence[int]) -> Array:
    """The transpose of `pad`: without what was added."""
    input_size = v.shape[len(v.shape) - len(padding) :]
    slices = (slice(p, n - p) for p, n in zip(padding, input_size, strict=True))
    return v[(..., *slices)]


def grouped(x: Array, groups: int) -> Array:
    """(N, C, positions...) as (N, groups, C / groups, positions): one matrix for every group."""
    xp = array_namespace(x)
    batch, channels, *input_size = x.shape
    return xp.reshape(x, (batch, groups, channels // groups, prod(input_size)))


def ungrouped(x: Array, input_size: Sequence[int]) -> Array:
    """The inverse of `grouped`: (N, C, positions...)."""
    xp = array_namespace(x)
    batch, groups, channels, _ = x.shape
    return xp.reshape(x, (batch, groups * channels, *input_size))


def _full(shape: Sequence[int], value: float, like: Array) -> Array:
    xp = array_namespace(like)
    return xp.full(tuple(shape), value, dtype=like.dtype, device=device(like))


def check_setting(op: str, name: str, setting: Any, axes: int, *, least: int) -> None:
    """ArgumentError unless it is an int, or one for every axis, from `least` to 2³¹ − 1."""
    given = (setting,) * axes if isinstance(setting, _INTEGERS) else setting
    if (
        not isinstance(given, tuple | list)
        or len(given) != axes
        or not all(_is_whole(number) and least <= number < _LIMIT for number in given)
    ):
        allowed = "an int" if axes == 1 else "an int or two ints"
        raise ArgumentError(
            f"{op}: {name} is {shown(setting)}; allowed: {allowed}, from {least} to {_LIMIT - 1}"
        )


def _is_whole(number: Any) -> bool:
    """Return whether it is an int, of Python or NumPy, and no bool."""
    return isinstance(number, _INTEGERS) and not isinstance(number, bool)


def check_rank(op: str, name: str, shape: Sequence[int], layout: str) -> None:
    """ShapeError unless there are as many axes as in `layout`, such as "N, C, H, W"."""
    if len(shape) != layout.count(",") + 1:
        raise ShapeError(f"{op}: {name} has shape {tuple(shape)}; allowed: ({layout})")


def check_windows(
    op: str,
    input_size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> None:
    """ShapeError unless the kernel fits into the padded input, and that is no larger than 2³¹."""
    check_plane(
        op, "the padded input", [n + 2 * p for n, p in zip(input_size, padding, strict=True)]
    )
    if min(output_size(input_size, kernel, stride, padding, dilation)) < 1 or min(kernel) < 1:
        raise ShapeError(
            f"{op}: a kernel of {tuple(kernel)} with dilation {tuple(dilation)} is put on "
            f"{tuple(input_size)} with padding {tuple(padding)}; allowed: a kernel of at least 1, "
            "and dilation·(kernel − 1) + 1 at most the input + 2·padding"
        )


def check_plane(op: str, what: str, input_size: Sequence[int]) -> None:
    """ShapeError unless the elements of one channel number less than 2³¹."""
    if prod(input_size) >= _LIMIT:
        raise ShapeError(
            f"{op}: {what} has {' · '.join(map(str, input_size))} elements in every channel; "
            f"allowed: less than {_LIMIT} in all"
        )


def check_convolution(
    op: str,
    layout: str,
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Setting,
    padding: Setting,
    dilation: Setting,
    groups: int,
    activation: str,
) -> None:
    """Every check of a convolution on x of `layout`; raises ShapeError or ArgumentError."""
    check_activation(op, activation)
    shapes = tuple(x.shape), tuple(weight.shape)
    _check_convolution(op, layout, *shapes, stride, padding, dilation, groups)
    if bias is not None:
        check_vector(op, "bias", bias, shapes[1][0])


@once_per_shape
def _check_convolution(
    op: str,
    layout: str,
    x: tuple[int, ...],
    weight: tuple[int, ...],
    stride: Setting,
    padding: Setting,
    dilation: Setting,
    groups: int,
) -> None:
    """Every check that needs only the shapes of x and weight, and the settings."""
    kernel_layout = _kernel_layout("out", "in / groups", layout)
    axes = kernel_layout.count(",") - 1
    check_rank(op, "x", x, layout)
    check_rank(op, "weight", weight, kernel_layout)
    check_setting(op, "stride", stride, axes, least=1)
    check_setting(op, "padding", padding, axes, least=0)
    check_setting(op, "dilation", dilation, axes, least=1)
    out_channels, in_channels = weight[:2]
    check_groups(op, "out", out_channels, groups, in_channels)
    check_channels(op, x, weight, in_channels * groups, groups)
    settings = per_axis(stride, axes), per_axis(padding, axes), per_axis(dilation, axes)
    check_windows(op, x[2:], weight[2:], *settings)
    check_size(op, "y", (x[0], out_channels, *output_size(x[2:], weight[2:], *settings)))


def check_transposed_convolution(
    op: str,
    layout: str,
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Setting,
    padding: Setting,
    output_padding: Setting,
    groups: int,
    dilation: Setting,
) -> None:
    """Every check of a transposed convolution; raises ShapeError or ArgumentError."""
    shapes = tuple(x.shape), tuple(weight.shape)
    _check_transposed(op, layout, *shapes, stride, padding, output_padding, groups, dilation)
    if bias is not None:
        check_vector(op, "bias", bias, shapes[1][1] * groups)


@once_per_shape
def _check_transposed(
    op: str,
    layout: str,
    x: tuple[int, ...],
    weight: tuple[int, ...],
    stride: Setting,
    padding: Setting,
    output_padding: Setting,
    groups: int,
    dilation: Setting,
) -> None:
    """Every check that needs only the shapes of x and weight, and the settings."""
    kernel_layout = _kernel_layout("in", "out / groups", layout)
    axes = kernel_layout.count(",") - 1
    check_rank(op, "x", x, layout)
    check_rank(op, "weight", weight, kernel_layout)
    check_setting(op, "stride", stride, axes, least=1)
    check_setting(op, "padding", padding, axes, least=0)
    check_setting(op, "output_padding", output_padding, axes, least=0)
    check_setting(op, "dilation", dilation, axes, least=1)
    in_channels, out_channels, *kernel = weight
    check_groups(op, "in", in_channels, groups, out_channels)
    check_channels(op, x, weight, in_channels, groups)
    strides, dilations = per_axis(stride, axes), per_axis(dilation, axes)
    extras = per_axis(output_padding, axes)
    for s, d, extra in zip(strides, dilations, extras, strict=True):
        if extra >= max(s, d):
            raise ArgumentError(
                f"{op}: output_padding is {output_padding!r}; allowed: less than stride = "
                f"{stride!r} or dilation = {dilation!r}"
            )
    unpadded = unpadded_size(x[2:], kernel, strides, extras, dilations)
    check_plane(op, "the output with its padding", unpadded)
    check_size(op, "y", (x[0], out_channels * groups, *unpadded))
    for size, p, k, n in zip(unpadded, per_axis(padding, axes), kernel, x[2:], strict=True):
        if size - 2 * p < 1 or k < 1 or n < 1:
            raise ShapeError(
                f"{op}: x {x} and weight {weight} make {unpadded} positions, "
                f"less {padding!r} of padding on both sides; allowed: at least 1 position left"
            )


def _kernel_layout(first: str, second: str, layout: str) -> str:
    """The axes of the weight of a convolution on x of `layout`: "out, in / groups, KH, KW"."""
    return ", ".join(
        (first, second, *("K" if n == "T" else "K" + n for n in layout[6:].split(", ")))
    )


def check_groups(op: str, side: str, channels: int, groups: int, others: int) -> None:
    """ArgumentError unless the channels, those on this side of the weight, split into groups.

    `others` are the weight's channels on the other side; where both sides have none, one group.
    """
    most = channels if channels or not others else _LIMIT - 1
    if not 1 <= groups <= max(most, 1) or channels % groups != 0:
        raise ArgumentError(
            f"{op}: groups is {groups}; allowed: a divisor of the {channels} {side} channels"
        )


def check_channels(
    op: str, x: Sequence[int], weight: Sequence[int], channels: int, groups: int
) -> None:
    """ShapeError unless x has as many channels as the weight takes; both are shapes."""
    if x[1] != channels:
        raise ShapeError(
            f"{op}: x has shape {tuple(x)}; allowed: {channels} channels on axis 1, because "
            f"weight has shape {tuple(weight)} and groups is {groups}"
        )


@once_per_shape
def check_pooling(
    op: str,
    layout: str,
    x: tuple[int, ...],
    kernel_size: Any,
    stride: Setting | None,
    padding: Setting,
    dilation: Setting,
    *,
    can_be_global: bool = False,
) -> None:
    """Every check of a pooling on an x of this shape; raises ShapeError or ArgumentError."""
    check_rank(op, "x", x, layout)
    input_size, names = x[2:], layout[6:].split(", ")
    axes = len(names)
    if min(input_size) < 1:
        raise ShapeError(
            f"{op}: x has shape {x}; allowed: ({layout}) with {' and '.join(names)} at least 1"
        )
    if isinstance(kernel_size, str) and kernel_size == "global" and can_be_global:
        check_setting(op, "padding", padding, axes, least=0)
        if stride is not None or any(per_axis(padding, axes)):
            raise ArgumentError(
                f"{op}: stride is {shown(stride)} and padding is {padding!r} with "
                "kernel_size='global'; allowed: None and 0"
            )
        kernel_size = input_size
    check_setting(op, "kernel_size", kernel_size, axes, least=1)
    check_setting(op, "padding", padding, axes, least=0)
    check_setting(op, "dilation", dilation, axes, least=1)
    if stride is not None:
        check_setting(op, "stride", stride, axes, least=1)
    kernel, paddings = per_axis(kernel_size, axes), per_axis(padding, axes)
    dilations = per_axis(dilation, axes)
    if any(2 * p > k for p, k in zip(paddings, kernel, strict=True)):
        raise ArgumentError(
            f"{op}: padding is {padding!r}; allowed: at most half of kernel_size = {kernel_size!r}"
        )
    strides = kernel if stride is None else per_axis(stride, axes)
    check_windows(op, input_size, kernel, strides, paddings, dilations)
    # With a padding of half the kernel at most, offsets can step over the whole input only here.
    if any(k > 1 and d > n for n, k, d in zip(input_size, kernel, dilations, strict=True)):
        raise ShapeError(
            f"{op}: a kernel of {kernel} with dilation {dilation!r} finds only padding on "
            f"{tuple(input_size)}; allowed: a value in every window"
        )
