"""Convolutions: a small kernel moved over sequences (N, C, T) and images (N, C, H, W)."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.windows import Setting, output_size, per_axis, unpadded_size
from handgrad.initializers import Initializer
from handgrad.keywords import with_defaults
from handgrad.layers.base import OpLayer, Shape
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.inputs import in_own_type
from handgrad.layers.settings import ConvolutionSettings
from handgrad.ops import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from handgrad.ops.activation import check_activation
from handgrad.ops.windows import check_setting


def _setting(layer: str, name: str, setting: Setting, axes: int, *, least: int) -> Shape:
    """One number for every axis, each at least `least`, or ArgumentError."""
    check_setting(layer, name, setting, axes, least=least)
    return per_axis(setting, axes)


def _check_groups(layer: str, in_channels: int, out_channels: int, groups: int) -> None:
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ArgumentError(
            f"{layer}: groups is {groups}; allowed: what divides both {in_channels} in_channels "
            f"and {out_channels} out_channels"
        )


def _check_example(layer: str, shape: Shape, channels: int, axes: int) -> None:
    if len(shape) != axes + 1 or shape[0] != channels:
        axes_after = "T" if axes == 1 else "H, W"
        raise ShapeError(
            f"{layer}: an example has shape {shape}; allowed: ({channels}, {axes_after})"
        )


class _Windowed(OpLayer):
    """Shared parts of convolutions and transposed ones: sizes and settings."""

    parameter_names = ("weight", "bias")
    axes: int

    def _settle(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Setting,
        settings: ConvolutionSettings,
    ) -> ConvolutionSettings:
        """Keep what decides shapes, one number for every axis; all settings come back."""
        name = type(self).__name__
        chosen = with_defaults(name, ConvolutionSettings, settings)
        self.groups = chosen["groups"]
        _check_groups(name, in_channels, out_channels, self.groups)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _setting(name, "kernel_size", kernel_size, self.axes, least=1)
        self.stride = _setting(name, "stride", chosen["stride"], self.axes, least=1)
        self.padding = _setting(name, "padding", chosen["padding"], self.axes, least=0)
        self.dilation = _setting(name, "dilation", chosen["dilation"], self.axes, least=1)
        return chosen

    def _draw(
        self,
        shape: Shape,
        initializer: Initializer,
        rng: np.random.Generator,
        settings: ConvolutionSettings,
    ) -> None:
        """Make the weight of this shape, and the bias."""
        self.initializer = initializer
        self.weight = initializer(shape, rng, dtype=settings["dtype"])
        zeros = np.zeros(self.out_channels, dtype=settings["dtype"])
        self.bias = zeros if settings["bias"] else None


class _Convolution(_Windowed):
    """Shared parts of Conv1d and Conv2d: sizes, first values and the row of the report."""

    def __init__(
        self,
        in_channels: InputSize,
        out_channels: int,
        kernel_size: Setting,
        *,
        rng: np.random.Generator = FROM_SEED,
        activation: str = "identity",
        initializer: Initializer | None = None,
        **settings: Unpack[ConvolutionSettings],
    ) -> None:
        chosen = self._settle(in_channels, out_channels, kernel_size, settings)
        check_activation(type(self).__name__, activation)
        self.activation = activation
        shape = (out_channels, in_channels // self.groups, *self.kernel_size)
        initializer = initializer or initializers.for_activation(activation)
        self._draw(shape, initializer, rng, chosen)

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        y, cache = self.op.forward(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
            activation=self.activation,
        )
        return y, cache

    def output_shape(self, input_shape: Shape) -> Shape:
        _check_example(type(self).__name__, input_shape, self.in_channels, self.axes)
        size = output_size(
            input_shape[1:], self.kernel_size, self.stride, self.padding, self.dilation
        )
        if min(size) < 1:
            raise ShapeError(
                f"{type(self).__name__}: an example has shape {input_shape}; allowed: with padding "
                f"{self.padding}, no smaller than the kernel {self.kernel_size}"
            )
        return (self.out_channels, *size)

    def flops(self, input_shape: Shape) -> int:
        outputs = math.prod(self.output_shape(input_shape))
        products = self.in_channels // self.groups * math.prod(self.kernel_size)
        return outputs * (2 * products + (self.bias is not None))


class Conv1d(_Convolution):
    """Cross-correlation of sequences (N, C, T), weight (out, in / groups, K), then an activation.

    Sizes and settings are PyTorch's; first values are those of Dense.
    """

    op = conv1d
    axes = 1
    capturable = True


class Conv2d(_Convolution):
    """Cross-correlation of images (N, C, H, W), weight (out, in / groups, KH, KW), then an
    activation.

    Sizes and settings are PyTorch's; first values are those of Dense.
    """

    op = conv2d
    axes = 2
    capturable = True


class _TransposedConvolution(_Windowed):
    """Shared parts of ConvTranspose1d and ConvTranspose2d."""

    def __init__(
        self,
        in_channels: InputSize,
        out_channels: int,
        kernel_size: Setting,
        *,
        rng: np.random.Generator = FROM_SEED,
        output_padding: Setting = 0,
        initializer: Initializer = initializers.xavier_uniform,
        **settings: Unpack[ConvolutionSettings],
    ) -> None:
        chosen = self._settle(in_channels, out_channels, kernel_size, settings)
        name = type(self).__name__
        self.output_padding = _setting(name, "output_padding", output_padding, self.axes, least=0)
        shape = (in_channels, out_channels // self.groups, *self.kernel_size)
        self._draw(shape, initializer, rng, chosen)

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        y, cache = self.op.forward(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            output_padding=self.output_padding,
            groups=self.groups,
            dilation=self.dilation,
        )
        return y, cache

    def output_shape(self, input_shape: Shape) -> Shape:
        _check_example(type(self).__name__, input_shape, self.in_channels, self.axes)
        unpadded = unpadded_size(
            input_shape[1:], self.kernel_size, self.stride, self.output_padding, self.dilation
        )
        size = [n - 2 * p for n, p in zip(unpadded, self.padding, strict=True)]
        if min(size) < 1:
            raise ShapeError(
                f"{type(self).__name__}: an example has shape {input_shape}, which leaves {size} "
                f"positions of output without the padding {self.padding}; allowed: at least 1"
            )
        return (self.out_channels, *size)

    def flops(self, input_shape: Shape) -> int:
        outputs = math.prod(self.output_shape(input_shape))
        per_input = self.out_channels // self.groups * math.prod(self.kernel_size)
        return 2 * math.prod(input_shape) * per_input + outputs * (self.bias is not None)


class ConvTranspose1d(_TransposedConvolution):
    """The input gradient of a convolution as a layer: short sequences become long ones.

    Weight (in, out / groups, K); sizes and settings are PyTorch's, the first weight is Xavier
    uniform, the bias starts at 0.
    """

    op = conv_transpose1d
    axes = 1
    capturable = True


class ConvTranspose2d(_TransposedConvolution):
    """The input gradient of a convolution as a layer: small images become large ones.

    Weight (in, out / groups, KH, KW); sizes and settings are PyTorch's, the first weight is Xavier
    uniform, the bias starts at 0.
    """

    op = conv_transpose2d
    axes = 2
    capturable = True
