"""Convolution in one dimension: one matrix product per kernel offset, summed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.geometry.windows import output_size, per_axis
from handgrad.ops.activation import activate, activation_gradient
from handgrad.ops.windows import (
    check_convolution,
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
    """x as it came (padding it again costs less than keeping a second copy), the weight, and a,
    the value before the activation; of the bias only whether there was one."""

    x: Array
    weight: Array
    a: Array
    has_bias: bool
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    activation: str


def validate(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: int | tuple[int] = 1,
    padding: int | tuple[int] = 0,
    dilation: int | tuple[int] = 1,
    groups: int = 1,
    activation: str = "identity",
) -> None:
    check_convolution(
        "conv1d", "N, C, T", x, weight, bias, stride, padding, dilation, groups, activation
    )


@operation
def forward(
    x: Float[Array, "N C T"],
    weight: Float[Array, "O I K"],
    bias: Float[Array, " O"] | None = None,
    *,
    stride: int | tuple[int] = 1,
    padding: int | tuple[int] = 0,
    dilation: int | tuple[int] = 1,
    groups: int = 1,
    activation: str = "identity",
) -> tuple[Float[Array, "N O TO"], Cache]:
    """Cross-correlation of sequences with a kernel, a bias, and an activation on top.

    Forward:  a = Σ_m W[:, :, m] · V[:, :, m·d :: s] + b,  y = f(a)
    Backward: da = dy f′(a),  db = Σ da,
              dW[:, :, m] = Σ_batch da · V[:, :, m·d :: s]ᵀ,
              dV[:, :, m·d :: s] = W[:, :, m]ᵀ · da, summed over m

    V is x with zeros around it, s the stride, d the dilation. Last steps that no move of the
    kernel reaches have gradient 0. Each group reads only its own C / groups channels.

    A weight that is NaN or infinite makes NaN of its products with the zeros around x or dy; a
    kernel leaves some of these products out, others it makes where the op has none, so that
    steps at the edges may be NaN on one engine alone. Without channels y is the bias.

    Shapes: x (N, C, T), weight (O, C / groups, K), bias (O,), y (N, O, TO) with
    TO = ⌊(T + 2·padding − dilation·(K − 1) − 1) / stride⌋ + 1.
    Raises ShapeError where these do not fit, ArgumentError for an impossible setting.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equations 6 to 9, c, g and
    h, on one axis, with padding, dilation, groups and a bias.
    """
    xp = array_namespace(x)
    strides, paddings, dilations = per_axis(stride, 1), per_axis(padding, 1), per_axis(dilation, 1)
    out_channels, in_channels, *kernel = weight.shape
    size = output_size(x.shape[2:], kernel, strides, paddings, dilations)
    v = pad(x, paddings)
    w = xp.reshape(weight, (groups, out_channels // groups, in_channels, *kernel))
    a = sum(
        w[..., m] @ grouped(window(v, (m,), strides, dilations, size), groups)
        for (m,) in kernel_offsets(kernel)
    )
    a = ungrouped(a, size)
    if bias is not None:
        a = a + xp.reshape(bias, (1, out_channels, 1))
    y = activate(a, activation)
    has_bias = bias is not None
    return y, Cache(x, weight, a, has_bias, strides, paddings, dilations, groups, activation)


@operation
def backward(
    dy: Float[Array, "N O TO"], cache: Cache
) -> tuple[Float[Array, "N C T"], Float[Array, "O I K"], Float[Array, " O"] | None]:
    """db = Σ da;  dW = da · Vᵀ for each kernel offset;  dV = Σ Wᵀ · da, scattered."""
    x, weight, a, has_bias, strides, paddings, dilations, groups, activation = cache
    xp = array_namespace(dy)
    out_channels, in_channels, *kernel = weight.shape
    size = dy.shape[2:]
    v = pad(x, paddings)
    w = xp.reshape(weight, (groups, out_channels // groups, in_channels, *kernel))
    da = activation_gradient(dy, a, activation)
    dbias = xp.sum(da, axis=(0, 2)) if has_bias else None
    g = grouped(da, groups)
    dw_offsets = [
        xp.sum(g @ grouped(window(v, (m,), strides, dilations, size), groups).mT, axis=0)
        for (m,) in kernel_offsets(kernel)
    ]
    dweight = xp.reshape(xp.stack(dw_offsets, axis=-1), weight.shape)
    dv = sum(
        scatter(ungrouped(w[..., m].mT @ g, size), (m,), strides, dilations, v.shape[2:])
        for (m,) in kernel_offsets(kernel)
    )
    dx = crop(dv, paddings)
    return dx, dweight, dbias
