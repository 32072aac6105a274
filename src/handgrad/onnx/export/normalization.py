"""Normalisation layers, as at inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from handgrad.layers import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from handgrad.onnx.export.elementwise import FUNCTIONS
from handgrad.onnx.graph import Graph, Value


def layer_norm(g: Graph, layer: LayerNorm, x: Value) -> Value:
    beta = None if layer.beta is None else g.constant(layer.beta)
    given = [x, g.constant(layer.gamma), *([] if beta is None else [beta])]
    return g.op("LayerNormalization", *given, axis=-1, epsilon=float(layer.eps))


def rms_norm(g: Graph, layer: RMSNorm, x: Value) -> Value:
    mean_square = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1])
    rms = g.op("Sqrt", g.op("Add", mean_square, g.number(layer.eps)))
    return g.op("Mul", g.op("Div", x, rms), g.constant(layer.gamma))


def batch_norm(g: Graph, layer: BatchNorm, x: Value) -> Value:
    arrays = (layer.gamma, layer.beta, layer.running_mean, layer.running_var)
    y = g.op("BatchNormalization", x, *map(g.constant, arrays), epsilon=float(layer.eps))
    return FUNCTIONS[layer.activation](g, y)


def group_norm(g: Graph, layer: GroupNorm, x: Value) -> Value:
    """Groups as the channels of an instance normalisation; gamma and beta act after it.

    The parameters are brought to (C, 1) on the values as (N, C, positions), whatever the number of
    axes behind the channels.
    """
    groups = g.op("Reshape", x, g.ints(0, layer.num_groups, -1))
    ones = g.constant(np.ones(layer.num_groups, g.dtype))
    zeros = g.constant(np.zeros(layer.num_groups, g.dtype))
    hat = g.op("InstanceNormalization", groups, ones, zeros, epsilon=float(layer.eps))
    channels = g.op("Reshape", hat, g.ints(0, layer.channels, -1))
    gamma, beta = (
        g.op("Unsqueeze", g.constant(each), g.ints(1)) for each in (layer.gamma, layer.beta)
    )
    y = g.op("Add", g.op("Mul", channels, gamma), beta)
    return g.op("Reshape", y, g.op("Shape", x))


RULES: Final[Mapping[type, Callable[..., Value]]] = {
    BatchNorm: batch_norm,
    GroupNorm: group_norm,
    InstanceNorm: group_norm,
    LayerNorm: layer_norm,
    RMSNorm: rms_norm,
}
