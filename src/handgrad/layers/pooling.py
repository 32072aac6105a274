"""Pooling: one value for every window of an image."""

from __future__ import annotations

import math
from typing import Any

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers.base import OpLayer, Shape
from handgrad.ops import avg_pool2d, max_pool2d
from handgrad.ops.windows import Setting, output_size, per_axis

Pair = int | tuple[int, int]


def _pooled_shape(
    layer: str,
    input_shape: Shape,
    kernel_size: Setting,
    stride: Setting,
    padding: Setting,
    dilation: Setting,
) -> Shape:
    if len(input_shape) != 3:
        raise ShapeError(f"{layer}: an example has shape {input_shape}; allowed: (C, H, W)")
    settings = [per_axis(value, 2) for value in (kernel_size, stride, padding, dilation)]
    size = output_size(input_shape[1:], *settings)
    if min(size) < 1:
        raise ShapeError(
            f"{layer}: an example has shape {input_shape}; allowed: with padding {padding}, "
            f"no smaller than the window {kernel_size}"
        )
    return (input_shape[0], *size)


class MaxPool2d(OpLayer):
    """The largest value of every window of (N, C, H, W); settings are PyTorch's."""

    op = max_pool2d
    capturable = True

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        dilation: Pair = 1,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        return max_pool2d.forward(x, self.kernel_size, self.stride, self.padding, self.dilation)

    def output_shape(self, input_shape: Shape) -> Shape:
        return _pooled_shape(
            "MaxPool2d", input_shape, self.kernel_size, self.stride, self.padding, self.dilation
        )

    def flops(self, input_shape: Shape) -> int:
        """One comparison for every value of every window."""
        window = math.prod(per_axis(self.kernel_size, 2))
        return math.prod(self.output_shape(input_shape)) * window


class AvgPool2d(OpLayer):
    """The mean of every window of (N, C, H, W), or with `kernel_size="global"` of every image,
    which gives (N, C, 1, 1); settings are PyTorch's."""

    op = avg_pool2d
    capturable = True

    def __init__(
        self,
        kernel_size: Pair | str,
        stride: Pair | None = None,
        padding: Pair = 0,
        *,
        count_include_pad: bool = True,
    ) -> None:
        if isinstance(kernel_size, str) and kernel_size != "global":
            raise ArgumentError(
                f"AvgPool2d: kernel_size is {kernel_size!r}; allowed: an int, two ints or 'global'"
            )
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.count_include_pad = count_include_pad

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        return avg_pool2d.forward(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            count_include_pad=self.count_include_pad,
        )

    def _window(self, input_shape: Shape) -> Setting:
        return input_shape[1:] if isinstance(self.kernel_size, str) else self.kernel_size

    def output_shape(self, input_shape: Shape) -> Shape:
        window = self._window(input_shape)
        stride = window if self.stride is None else self.stride
        return _pooled_shape("AvgPool2d", input_shape, window, stride, self.padding, 1)

    def flops(self, input_shape: Shape) -> int:
        """One addition for every value of every window."""
        window = math.prod(per_axis(self._window(input_shape), 2))
        return math.prod(self.output_shape(input_shape)) * window
