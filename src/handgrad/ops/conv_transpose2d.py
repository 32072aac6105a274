"""Transposed convolution: the input gradient of a convolution, used as a forward pass."""

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
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    output_padding: int | tuple[int, int] = 0,
    groups: int = 1,
    dilation: int | tuple[int, int] = 1,
) -> None:
    check_transposed_convolution(
        "conv_transpose2d",
        "N, C, H, W",
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
    x: Float[Array, "N C H W"],
    weight: Float[Array, "C I KH KW"],
    bias: Float[Array, " O"] | None = None,
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    output_padding: int | tuple[int, int] = 0,
    groups: int = 1,
    dilation: int | tuple[int, int] = 1,
) -> tuple[Float[Array, "N O HO WO"], Cache]:
    """Transposed convolution of images, with a bias.

    Forward:  V[:, :, m·d :: s, n·d :: s] = W[:, :, m, n]ᵀ · x, summed over (m, n)
              y = V without its padding, + b
    Backward: db = Σ dy,  dV = dy with zeros where the padding was,
              dW[:, :, m, n] = Σ_batch x · dV[:, :, m·d :: s, n·d :: s]ᵀ,
              dx = Σ_{m,n} W[:, :, m, n] · dV[:, :, m·d :: s, n·d :: s]

    It is the input gradient of conv2d with the same weight, h of Yamanishi (9), so its own input
    gradient is a convolution. `output_padding` adds rows and columns at the end, where conv2d's
    floor division would have left some out; V is 0 there.

    With a weight that is NaN or infinite, positions at the edges may be NaN on one engine alone, as
    in conv2d.

    Shapes: x (N, C, H, W), weight (C, O / groups, KH, KW), bias (O,), y (N, O, HO, WO) with
    HO = (H − 1)·stride − 2·padding + dilation·(KH − 1) + output_padding + 1, and WO likewise.
    Raises ShapeError where these do not fit, ArgumentError for an impossible setting.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equation 9, with padding,
    dilation, groups and a bias.
    """
    xp = array_namespace(x)
    strides, paddings, dilations = per_axis(stride, 2), per_axis(padding, 2), per_axis(dilation, 2)
    in_channels, out_channels, *kernel = weight.shape
    size = x.shape[2:]
    unpadded = unpadded_size(size, kernel, strides, per_axis(output_padding, 2), dilations)
    w = xp.reshape(weight, (groups, in_channels // groups, out_channels, *kernel))
    g = grouped(x, groups)
    v = sum(
        scatter(ungrouped(w[..., m, n].mT @ g, size), (m, n), strides, dilations, unpadded)
        for m, n in kernel_offsets(kernel)
    )
    y = crop(v, paddings)
    if bias is not None:
        y = y + xp.reshape(bias, (1, out_channels * groups, 1, 1))
    return y, Cache(x, weight, bias is not None, strides, paddings, dilations, groups)


@operation
def backward(
    dy: Float[Array, "N O HO WO"], cache: Cache
) -> tuple[Float[Array, "N C H W"], Float[Array, "C I KH KW"], Float[Array, " O"] | None]:
    """db = Σ dy;  dW = x · dVᵀ for each kernel offset;  dx = Σ W · dV."""
    x, weight, has_bias, strides, paddings, dilations, groups = cache
    xp = array_namespace(dy)
    in_channels, out_channels, *kernel = weight.shape
    size = x.shape[2:]
    dbias = xp.sum(dy, axis=(0, 2, 3)) if has_bias else None
    w = xp.reshape(weight, (groups, in_channels // groups, out_channels, *kernel))
    g = grouped(x, groups)
    dv = pad(dy, paddings)
    dv_windows = [
        grouped(window(dv, (m, n), strides, dilations, size), groups)
        for m, n in kernel_offsets(kernel)
    ]
    dw_offsets = [xp.sum(g @ dv_window.mT, axis=0) for dv_window in dv_windows]
    dweight = xp.reshape(xp.stack(dw_offsets, axis=-1), weight.shape)
    dx = sum(
        w[..., m, n] @ dv_window
        for (m, n), dv_window in zip(kernel_offsets(kernel), dv_windows, strict=True)
    )
    dx = ungrouped(dx, size)
    return dx, dweight, dbias
