"""Dense layers, tables, and the layers that put others together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from handgrad.layers import Dense, Embedding, Residual, Sequential
from handgrad.onnx.export.elementwise import FUNCTIONS
from handgrad.onnx.graph import Graph, Value


def dense(g: Graph, layer: Dense, x: Value) -> Value:
    options = {name: value for name, value in layer.options.items() if name != "activation"}
    y = g.linear(x, layer.weight, layer.bias)
    return FUNCTIONS[layer.options["activation"]](g, y, **options)


def embedding(g: Graph, layer: Embedding, tokens: Value) -> Value:
    return g.op("Gather", g.constant(layer.weight), tokens, axis=0)


def sequential(g: Graph, layer: Sequential, x: Value) -> Value:
    for child in layer.layers.values():
        x = g.layer(child, x)
    return x


def residual(g: Graph, layer: Residual, x: Value) -> Value:
    branch = g.layer(layer.inner, x)
    skip = x if layer.projection is None else g.layer(layer.projection, x)
    return g.op("Add", skip, branch)


RULES: Final[Mapping[type, Callable[..., Value]]] = {
    Dense: dense,
    Embedding: embedding,
    Residual: residual,
    Sequential: sequential,
}
