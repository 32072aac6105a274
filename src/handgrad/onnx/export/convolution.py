"""Convolutions and poolings of sequences (N, C, T) and images (N, C, H, W)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from handgrad.geometry.windows import per_axis
from handgrad.layers import (
    AvgPool1d,
    AvgPool2d,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    MaxPool1d,
    MaxPool2d,
)
from handgrad.onnx.export.elementwise import FUNCTIONS
from handgrad.onnx.graph import Graph, Value


def _parameters(g: Graph, layer: Any) -> list[Value]:
    return [g.constant(each) for each in (layer.weight, layer.bias) if each is not None]


def _settings(layer: Any) -> dict[str, Any]:
    return {
        "kernel_shape": list(layer.kernel_size),
        "strides": list(layer.stride),
        "pads": [*layer.padding, *layer.padding],
        "dilations": list(layer.dilation),
        "group": layer.groups,
    }


def convolution(g: Graph, layer: Conv1d | Conv2d, x: Value) -> Value:
    y = g.op("Conv", x, *_parameters(g, layer), **_settings(layer))
    return FUNCTIONS[layer.activation](g, y)


def transposed(g: Graph, layer: ConvTranspose1d | ConvTranspose2d, x: Value) -> Value:
    return g.op(
        "ConvTranspose",
        x,
        *_parameters(g, layer),
        **_settings(layer),
        output_padding=list(layer.output_padding),
    )


def max_pool(g: Graph, layer: MaxPool1d | MaxPool2d, x: Value) -> Value:
    padding = per_axis(layer.padding, layer.axes)
    return g.op(
        "MaxPool",
        x,
        kernel_shape=list(per_axis(layer.kernel_size, layer.axes)),
        strides=list(per_axis(layer.stride, layer.axes)),
        pads=[*padding, *padding],
        dilations=list(per_axis(layer.dilation, layer.axes)),
    )


def avg_pool(g: Graph, layer: AvgPool1d | AvgPool2d, x: Value) -> Value:
    if isinstance(layer.kernel_size, str):
        return g.op("GlobalAveragePool", x)
    padding = per_axis(layer.padding, layer.axes)
    stride = layer.kernel_size if layer.stride is None else layer.stride
    return g.op(
        "AveragePool",
        x,
        kernel_shape=list(per_axis(layer.kernel_size, layer.axes)),
        strides=list(per_axis(stride, layer.axes)),
        pads=[*padding, *padding],
        count_include_pad=int(layer.count_include_pad),
    )


RULES: Final[Mapping[type, Callable[..., Value]]] = {
    AvgPool1d: avg_pool,
    AvgPool2d: avg_pool,
    Conv1d: convolution,
    Conv2d: convolution,
    ConvTranspose1d: transposed,
    ConvTranspose2d: transposed,
    MaxPool1d: max_pool,
    MaxPool2d: max_pool,
}
