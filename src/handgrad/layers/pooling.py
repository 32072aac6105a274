"""Pooling: one value for every window of a sequence (N, C, T) or an image (N, C, H, W)."""

from __future__ import annotations

import math
from typing import Any

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.windows import Setting, output_size, per_axis
from handgrad.layers.base import OpLayer, Shape
from handgrad.layers.inputs import in_own_type
from handgrad.ops import avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from handgrad.ops.windows import check_setting


class _Pooling(OpLayer):
    """Shared parts of the poolings: their output and what it costs."""

    axes: int

    def _check_settings(self, **settings: Any) -> None:
        """Raise ArgumentError unless each is a number, or one for every axis."""
        for name, setting in settings.items():
            least = 0 if name == "padding" else 1
            check_setting(type(self).__name__, name, setting, self.axes, least=least)

    def _pooled_shape(
        self,
        input_shape: Shape,
        kernel_size: Setting,
        stride: Setting,
        padding: Setting,
        dilation: Setting,
    ) -> Shape:
        name = type(self).__name__
        if len(input_shape) != self.axes + 1:
            allowed = "(C, T)" if self.axes == 1 else "(C, H, W)"
            raise ShapeError(f"{name}: an example has shape {input_shape}; allowed: {allowed}")
        given = (kernel_size, stride, padding, dilation)
        size = output_size(input_shape[1:], *(per_axis(value, self.axes) for value in given))
        if min(size) < 1:
            raise ShapeError(
                f"{name}: an example has shape {input_shape}; allowed: with padding {padding}, "
                f"no smaller than the window {kernel_size}"
            )
        return (input_shape[0], *size)

    def _window(self, input_shape: Shape) -> Setting:
        raise NotImplementedError

    def flops(self, input_shape: Shape) -> int:
        """One comparison or addition for every value of every window."""
        window = math.prod(per_axis(self._window(input_shape), self.axes))
        return math.prod(self.output_shape(input_shape)) * window


class _MaxPool(_Pooling):
    def __init__(
        self,
        kernel_size: Setting,
        stride: Setting | None = None,
        padding: Setting = 0,
        dilation: Setting = 1,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self._check_settings(
            kernel_size=kernel_size, stride=self.stride, padding=padding, dilation=dilation
        )
        self.padding = padding
        self.dilation = dilation

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        y, cache = self.op.forward(x, self.kernel_size, self.stride, self.padding, self.dilation)
        return y, cache

    def _window(self, input_shape: Shape) -> Setting:
        return self.kernel_size

    def output_shape(self, input_shape: Shape) -> Shape:
        return self._pooled_shape(
            input_shape, self.kernel_size, self.stride, self.padding, self.dilation
        )


class MaxPool1d(_MaxPool):
    """The largest value of every window of (N, C, T); settings are PyTorch's."""

    op = max_pool1d
    axes = 1
    capturable = True


class MaxPool2d(_MaxPool):
    """The largest value of every window of (N, C, H, W); settings are PyTorch's."""

    op = max_pool2d
    axes = 2
    capturable = True


class _AvgPool(_Pooling):
    def __init__(
        self,
        kernel_size: Setting | str,
        stride: Setting | None = None,
        padding: Setting = 0,
        *,
        count_include_pad: bool = True,
    ) -> None:
        if isinstance(kernel_size, str) and kernel_size != "global":
            ints = "an int" if self.axes == 1 else "an int, two ints"
            raise ArgumentError(
                f"{type(self).__name__}: kernel_size is {kernel_size!r}; "
                f"allowed: {ints} or 'global'"
            )
        given = {"kernel_size": kernel_size} if not isinstance(kernel_size, str) else {}
        given |= {"stride": stride} if stride is not None else {}
        self._check_settings(**given, padding=padding)
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.count_include_pad = count_include_pad

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        y, cache = self.op.forward(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            count_include_pad=self.count_include_pad,
        )
        return y, cache

    def _window(self, input_shape: Shape) -> Setting:
        return input_shape[1:] if isinstance(self.kernel_size, str) else self.kernel_size

    def output_shape(self, input_shape: Shape) -> Shape:
        window = self._window(input_shape)
        stride = window if self.stride is None else self.stride
        return self._pooled_shape(input_shape, window, stride, self.padding, 1)


class AvgPool1d(_AvgPool):
    """The mean of every window of (N, C, T), or with `kernel_size="global"` of every sequence,
    which gives (N, C, 1); settings are PyTorch's."""

    op = avg_pool1d
    axes = 1
    capturable = True


class AvgPool2d(_AvgPool):
    """The mean of every window of (N, C, H, W), or with `kernel_size="global"` of every image,
    which gives (N, C, 1, 1); settings are PyTorch's."""

    op = avg_pool2d
    axes = 2
    capturable = True
