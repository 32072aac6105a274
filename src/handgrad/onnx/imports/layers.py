"""What a node computes, as a layer: one function per operator of ONNX, and one table of all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx

from handgrad import layers
from handgrad.arrays import Array
from handgrad.escaping import cut, quoted
from handgrad.layers.base import Layer
from handgrad.onnx.imports.graph import ReadGraph, attributes


@dataclass
class Plan:
    """A layer to be made: its class, the arguments of its constructor, and its arrays."""

    kind: type[Layer]
    args: tuple[Any, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)

    def layer(self) -> Layer:
        settings = dict(self.settings)
        floats = [each for each in self.arrays.values() if each.dtype.kind == "f"]
        if floats:
            settings["dtype"] = floats[0].dtype
        if self.arrays and "weight" in next(iter(self.arrays)):
            settings["rng"] = np.random.default_rng(0)
        made = self.kind(*self.args, **settings)
        named = {**made.parameters, **made.buffers}
        for name, array in self.arrays.items():
            if named[name].shape != array.shape:
                raise ValueError(f"{name} has shape {array.shape}; expected {named[name].shape}")
            named[name][...] = array
        return made


#: `plan(graph, node)` of a node whose first input is the value of the chain.
Planned = Callable[[ReadGraph, onnx.NodeProto], Plan | None]


def weights_of(g: ReadGraph, node: onnx.NodeProto, first: int = 1) -> list[Array | None]:
    """The inputs of a node from `first` on, all of them constants; None for one left out."""
    found: list[Array | None] = []
    for name in node.input[first:]:
        array = g.constant(name) if name else None
        if name and array is None:
            raise g.refusal(node, f"a constant for its input {quoted(name)}")
        if array is not None and array.dtype not in (np.float32, np.float64, np.int64, np.bool_):
            raise g.refusal(
                node, f"float32 or float64 for its input {quoted(name)}, of {array.dtype}"
            )
        found.append(array)
    return found


def _without(*names: str, **fixed: Any) -> Callable[[ReadGraph, onnx.NodeProto], Mapping[str, Any]]:
    """The attributes of a node, whose names are known, and those of `fixed` at these values."""

    def read(g: ReadGraph, node: onnx.NodeProto) -> Mapping[str, Any]:
        found = attributes(node)
        for name, value in found.items():
            if name in fixed and value != fixed[name]:
                raise g.refusal(node, f"{name} {fixed[name]}, not {cut(str(value))}")
            if name not in fixed and name not in names:
                raise g.refusal(node, f"no attribute {cut(name)}")
        return found

    return read


_WINDOW: Final = _without(
    *("kernel_shape", "strides", "pads", "dilations", "group", "output_padding"),
    *("count_include_pad", "auto_pad"),
    ceil_mode=0,
    storage_order=0,
)


def _window(g: ReadGraph, node: onnx.NodeProto, axes: int | None) -> tuple[int, dict[str, Any]]:
    """The number of axes of a window, and its settings as the layers take them."""
    found = dict(_WINDOW(g, node))
    axes = axes or len(found.get("kernel_shape", ()))
    if axes not in (1, 2):
        raise g.refusal(node, f"windows of 1 or 2 axes, not {axes}")
    pads = found.get("pads", [0] * 2 * axes)
    if found.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise g.refusal(node, f"auto_pad NOTSET, not {quoted(found['auto_pad'])}")
    if len(pads) != 2 * axes or pads[:axes] != pads[axes:]:
        raise g.refusal(node, f"the same padding on both sides, not {cut(str(pads))}")
    ones = [1] * axes
    return axes, {
        "stride": tuple(found.get("strides", ones)),
        "padding": tuple(pads[:axes]),
        "dilation": tuple(found.get("dilations", ones)),
    }


def convolution(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    weight, bias = (*weights_of(g, node), None)[:2]
    if weight is None or weight.ndim not in (3, 4):
        raise g.refusal(node, "a weight of 3 or 4 axes")
    axes, settings = _window(g, node, weight.ndim - 2)
    groups = attributes(node).get("group", 1)
    transposed = node.op_type == "ConvTranspose"
    if transposed:
        settings["output_padding"] = tuple(attributes(node).get("output_padding", [0] * axes))
    settings |= {"groups": groups, "bias": bias is not None}
    first, second = weight.shape[0], weight.shape[1] * groups
    channels = (first, second) if transposed else (second, first)
    kinds: dict[tuple[str, int], type[layers.Layer]] = {
        ("Conv", 1): layers.Conv1d,
        ("Conv", 2): layers.Conv2d,
        ("ConvTranspose", 1): layers.ConvTranspose1d,
        ("ConvTranspose", 2): layers.ConvTranspose2d,
    }
    arrays = {"weight": weight} | ({} if bias is None else {"bias": bias})
    return Plan(kinds[node.op_type, axes], (*channels, weight.shape[2:]), settings, arrays)


def max_pool(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    axes, settings = _window(g, node, None)
    kind = layers.MaxPool1d if axes == 1 else layers.MaxPool2d
    return Plan(kind, (tuple(attributes(node)["kernel_shape"]),), settings)


def avg_pool(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    axes, settings = _window(g, node, None)
    if settings.pop("dilation") != (1,) * axes:
        raise g.refusal(node, "no dilation")
    settings["count_include_pad"] = bool(attributes(node).get("count_include_pad", 0))
    kind = layers.AvgPool1d if axes == 1 else layers.AvgPool2d
    return Plan(kind, (tuple(attributes(node)["kernel_shape"]),), settings)


def dense(weight: Array, bias: Array | None) -> Plan:
    """A weight (out, in) and what is added."""
    arrays = {"weight": weight} | ({} if bias is None else {"bias": bias})
    return Plan(layers.Dense, weight.shape[::-1], {"bias": bias is not None}, arrays)


def gemm(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    found = _without("transB", "transA", alpha=1.0, beta=1.0)(g, node)
    weight, bias = (*weights_of(g, node), None)[:2]
    if weight is None or weight.ndim != 2 or found.get("transA", 0):
        raise g.refusal(node, "the input times a matrix of constants")
    weight = weight if found.get("transB", 0) else weight.T
    return dense(weight, None if bias is None else np.broadcast_to(bias, weight.shape[:1]))


def matmul(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    """A product without a bias, which an Add behind it may bring."""
    (weight,) = weights_of(g, node)
    if weight is None or weight.ndim != 2:
        raise g.refusal(node, "the input times a matrix of constants")
    return dense(weight.T, None)


def batch_norm(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    found = _without("epsilon", "momentum", training_mode=0, spatial=1)(g, node)
    names = ("gamma", "beta", "running_mean", "running_var")
    arrays = dict(zip(names, _all(g, node, 4), strict=True))
    settings = {"eps": found.get("epsilon", 1e-5)}
    return Plan(layers.BatchNorm, (len(arrays["gamma"]),), settings, arrays)


def layer_norm(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    found = _without("epsilon", axis=-1, stash_type=1)(g, node)
    gamma, beta = (*weights_of(g, node), None)[:2]
    if gamma is None or gamma.ndim != 1:
        raise g.refusal(node, "a normalisation over the last axis")
    arrays = {"gamma": gamma} | ({} if beta is None else {"beta": beta})
    settings = {"eps": found.get("epsilon", 1e-5), "bias": beta is not None}
    return Plan(layers.LayerNorm, (len(gamma),), settings, arrays)


def _all(g: ReadGraph, node: onnx.NodeProto, count: int) -> list[Array]:
    found = [each for each in weights_of(g, node) if each is not None and each.ndim == 1]
    if len(found) != count:
        raise g.refusal(node, f"{count} vectors of constants")
    return found


def function(name: str, **options: tuple[str, Any]) -> Planned:
    """An activation, whose options stand in attributes of these names and defaults."""

    def plan(g: ReadGraph, node: onnx.NodeProto) -> Plan:
        found = _without(*(attribute for attribute, _ in options.values()))(g, node)
        given = {
            option: found.get(attribute, default)
            for option, (attribute, default) in options.items()
        }
        return Plan(layers.Activation, (name,), given)

    return plan


def flatten(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    _without(axis=1)(g, node)
    return Plan(layers.Flatten)


def reshape(g: ReadGraph, node: onnx.NodeProto) -> Plan:
    """To rows, as `x.flatten(1)` and `x.view(len(x), -1)` are written."""
    target = g.constant(node.input[1])
    if target is not None and target.shape == (2,):
        return Plan(layers.Flatten)
    for shape in ((3, 5, 7), (3, 5, 7, 11)):
        found = g.shape_for(node.input[1], node.input[0], shape)
        if found is not None and found.tolist() in ([3, -1], [3, math.prod(shape[1:])]):
            return Plan(layers.Flatten)
    raise g.refusal(node, "a Reshape to (batch, features)")


def nothing(g: ReadGraph, node: onnx.NodeProto) -> None:
    return None


def global_average(axes: int) -> Plan:
    kind = layers.AvgPool1d if axes == 1 else layers.AvgPool2d
    return Plan(kind, ("global",))


TABLE: Final[Mapping[str, Planned]] = {
    "AveragePool": avg_pool,
    "BatchNormalization": batch_norm,
    "Conv": convolution,
    "ConvTranspose": convolution,
    "Dropout": nothing,
    "Erf": function("erf"),
    "Flatten": flatten,
    "Gelu": function("gelu", approximate=("approximate", "none")),
    "Gemm": gemm,
    "Identity": nothing,
    "LayerNormalization": layer_norm,
    "LeakyRelu": function("leaky_relu", negative_slope=("alpha", 0.01)),
    "MatMul": matmul,
    "MaxPool": max_pool,
    "Relu": function("relu"),
    "Reshape": reshape,
    "Sigmoid": function("sigmoid"),
    "Sin": function("sin"),
    "Softmax": function("softmax", axis=("axis", -1)),
    "Tanh": function("tanh"),
}
