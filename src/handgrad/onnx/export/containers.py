"""Dense layers, tables, and the layers that put others together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from handgrad.layers import ColumnEmbeddings, Dense, Embedding, Residual, Sequential
from handgrad.onnx.export.elementwise import FUNCTIONS
from handgrad.onnx.graph import Graph, Value

#: The standard's number of the type, and an end behind any axis.
_INT64: Final = 7
_END: Final = 2**62


def dense(g: Graph, layer: Dense, x: Value) -> Value:
    options = {name: value for name, value in layer.options.items() if name != "activation"}
    y = g.linear(x, layer.weight, layer.bias)
    return FUNCTIONS[layer.options["activation"]](g, y, **options)


def embedding(g: Graph, layer: Embedding, tokens: Value) -> Value:
    return g.op("Gather", g.constant(layer.weight), tokens, axis=0)


def column_embeddings(g: Graph, layer: ColumnEmbeddings, x: Value) -> Value:
    """Slices between the columns, the last one to the end of x, and the rows of the levels."""
    ends = (-1, *layer.columns, _END)
    runs = [(a + 1, b) for a, b in pairwise(ends) if a + 1 < b]
    parts = [g.op("Slice", x, g.ints(a), g.ints(b), g.ints(1)) for a, b in runs]
    for column, child in zip(layer.columns, layer.layers.values(), strict=True):
        levels = g.op("Gather", x, g.index(column), axis=1)
        parts.append(g.layer(child, g.op("Cast", levels, to=_INT64)))
    return g.op("Concat", *parts, axis=1)


def sequential(g: Graph, layer: Sequential, x: Value) -> Value:
    for child in layer.layers.values():
        x = g.layer(child, x)
    return x


def residual(g: Graph, layer: Residual, x: Value) -> Value:
    branch = g.layer(layer.inner, x)
    skip = x if layer.projection is None else g.layer(layer.projection, x)
    return g.op("Add", skip, branch)


RULES: Final[Mapping[type, Callable[..., Value]]] = {
    ColumnEmbeddings: column_embeddings,
    Dense: dense,
    Embedding: embedding,
    Residual: residual,
    Sequential: sequential,
}
