"""Transposed convolution in one dimension: the input gradient of conv1d as a forward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.geometry.windows import per_axis, unpadded_size
from handgrad.ops.windows import (
    check_transposed_convolution,
    crop,
    grouped,
    kernel_offsets,
    pad,
    scatter,
    ungrouped,
    window,
)

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """x and the weight, for the products of backward; of the bias only whether there was one."""

    x: Array
    weight: Array
    has_bias: bool
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def validate(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: int | tuple[int] = 1,
    padding: int | tuple[int] = 0,
    output_padding: int | tuple[int] = 0,
    groups: int = 1,
    dilation: int | tuple[int] = 1,
) -> None:
    check_transposed_convolution(
        "conv_transpose1d",
        "N, C, T",
        x,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


@operation
def forward(
    x: Float[Array, "N C T"],
    weight: Float[Array, "C I K"],
    bias: Float[Array, " O"] | None = None,
    *,
    stride: int | tuple[int] = 1,
    padding: int | tuple[int] = 0,
    output_padding: int | tuple[int] = 0,
    groups: int = 1,
    dilation: int | tuple[int] = 1,
) -> tuple[Float[Array, "N O TO"], Cache]:
    """Transposed convolution of sequences, with a bias.

    Forward:  V[:, :, m·d :: s] = W[:, :, m]ᵀ · x, summed over m
              y = V without its padding, + b
    Backward: db = Σ dy,  dV = dy with zeros where the padding was,
              dW[:, :, m] = Σ_batch x · dV[:, :, m·d :: s]ᵀ,
              dx = Σ_m W[:, :, m] · dV[:, :, m·d :: s]

    It is the input gradient of conv1d with the same weight, so its own input gradient is a
    convolution. `output_padding` adds steps at the end, where conv1d's floor division would have
    left some out; V is 0 there.

    With a weight that is NaN or infinite, steps at the edges may be NaN on one engine alone, as in
    conv1d.

    Shapes: x (N, C, T), weight (C, O / groups, K), bias (O,), y (N, O, TO) with
    TO = (T − 1)·stride − 2·padding + dilation·(K − 1) + output_padding + 1.
    Raises ShapeError where these do not fit, ArgumentError for an impossible setting.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equation 9, on one axis,
    with padding, dilation, groups and a bias.
    """
    xp = array_namespace(x)
    strides, paddings, dilations = per_axis(stride, 1), per_axis(padding, 1), per_axis(dilation, 1)
    in_channels, out_channels, *kernel = weight.shape
    size = x.shape[2:]
    unpadded = unpadded_size(size, kernel, strides, per_axis(output_padding, 1), dilations)
    w = xp.reshape(weight, (groups, in_channels // groups, out_channels, *kernel))
    g = grouped(x, groups)
    v = sum(
        scatter(ungrouped(w[..., m].mT @ g, size), (m,), strides, dilations, unpadded)
        for (m,) in kernel_offsets(kernel)
    )
    y = crop(v, paddings)
    if bias is not None:
        y = y + xp.reshape(bias, (1, out_channels * groups, 1))
    return y, Cache(x, weight, bias is not None, strides, paddings, dilations, groups)


@operation
def backward(
    dy: Float[Array, "N O TO"], cache: Cache
) -> tuple[Float[Array, "N C T"], Float[Array, "C I K"], Float[Array, " O"] | None]:
    """db = Σ dy;  dW = x · dVᵀ for each kernel offset;  dx = Σ W · dV."""
    x, weight, has_bias, strides, paddings, dilations, groups = cache
    xp = array_namespace(dy)
    in_channels, out_channels, *kernel = weight.shape
    size = x.shape[2:]
    dbias = xp.sum(dy, axis=(0, 2)) if has_bias else None
    w = xp.reshape(weight, (groups, in_channels // groups, out_channels, *kernel))
    g = grouped(x, groups)
    dv = pad(dy, paddings)
    dv_windows = [
        grouped(window(dv, (m,), strides, dilations, size), groups)
        for (m,) in kernel_offsets(kernel)
    ]
    dw_offsets = [xp.sum(g @ dv_window.mT, axis=0) for dv_window in dv_windows]
    dweight = xp.reshape(xp.stack(dw_offsets, axis=-1), weight.shape)
    dx = sum(
        w[..., m] @ dv_window
        for (m,), dv_window in zip(kernel_offsets(kernel), dv_windows, strict=True)
    )
    dx = ungrouped(dx, size)
    return dx, dweight, dbias
