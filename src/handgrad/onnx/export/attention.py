"""Attention, positions and transformer blocks.

Attention is MatMul and Softmax with masks, which every runtime has. A mask is a value `visible` of
booleans that broadcasts to (N, heads, T, S), True where a query may look, made once for a stack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from handgrad.geometry.positions import angles
from handgrad.layers import (
    AddNorm,
    LearnedPositions,
    MultiHeadAttention,
    PositionalEncoding,
    TransformerBlock,
    TransformerDecoder,
    TransformerEncoder,
)
from handgrad.onnx.graph import Graph, Value

#: The standard's number of float64.
_DOUBLE: Final = 11


def causal(g: Graph, x: Value) -> Value:
    """(T, T), True for the steps of x (N, T, …) up to a query's own."""
    steps = g.positions(x, 1)
    own = g.op("Unsqueeze", steps, g.ints(1))
    return g.op("LessOrEqual", steps, own)


def among(g: Graph, x: Value, lengths: Value | None) -> Value | None:
    """(N, 1, 1, S), True for the keys among the first `lengths`; None without lengths."""
    if lengths is None:
        return None
    return g.op("Unsqueeze", g.within_lengths(x, lengths), g.ints(1, 2))


def both(g: Graph, first: Value | None, second: Value | None) -> Value | None:
    """What two masks let through together."""
    if first is None or second is None:
        return second if first is None else first
    return g.op("And", first, second)


def multi_head(
    g: Graph,
    layer: MultiHeadAttention,
    query: Value,
    memory: Value | None = None,
    *,
    visible: Value | None = None,
) -> Value:
    """y (N, T, out) of a query (N, T, q_size), looking at itself or at a memory (N, S, k_size)."""
    memory = query if memory is None else memory
    q = _heads(g, layer, "q_proj", query, layer.heads)
    k = _heads(g, layer, "k_proj", memory, layer.kv_heads)
    v = _heads(g, layer, "v_proj", memory, layer.kv_heads)
    if layer.qk_norm:
        q, k = g.layer(layer.layers["q_norm"], q), g.layer(layer.layers["k_norm"], k)
    if layer.rotary:
        q, k = rotary(g, layer, q), rotary(g, layer, k)
    k, v = (_repeated(g, layer, each) for each in (k, v))
    scale = 1.0 / math.sqrt(layer.head_sizes[0]) if layer.scale is None else layer.scale
    pairs = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    weights = g.softmax(g.op("Mul", pairs, g.number(scale)), visible)
    merged = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    y = g.op("Reshape", merged, g.ints(0, 0, -1))
    return g.layer(layer.layers["o_proj"], y) if "o_proj" in layer.layers else y


def _heads(g: Graph, layer: MultiHeadAttention, name: str, x: Value, heads: int) -> Value:
    """An input by head, (N, heads, T, size); without a projection every head has all of it."""
    if name not in layer.layers:
        whole = g.op("Unsqueeze", x, g.ints(1))
        return g.op("Expand", whole, g.ints(1, heads, 1, 1))
    projected = g.layer(layer.layers[name], x)
    return g.op("Transpose", g.op("Reshape", projected, g.ints(0, 0, heads, -1)), perm=[0, 2, 1, 3])


def _repeated(g: Graph, layer: MultiHeadAttention, x: Value) -> Value:
    """Keys or values (N, G, S, size) for every head, where several heads share one."""
    times = layer.heads // layer.kv_heads
    if times == 1:
        return x
    each = g.op("Expand", g.op("Unsqueeze", x, g.ints(2)), g.ints(1, 1, times, 1, 1))
    size = g.size(x, 3)
    return g.op("Reshape", each, g.op("Concat", g.ints(0, layer.heads, -1), size, axis=0))


def rotary(g: Graph, layer: MultiHeadAttention, x: Value) -> Value:
    """The first half turned against the second, by angles that grow with the step."""
    size, given = layer.head_sizes[0], layer.rotary_frequencies
    frequency = angles(2, size, base=layer.rotary_base, frequencies=given)[1]
    angle = g.op("Mul", _times(g, x, 2), g.constant(frequency))
    sin, cos = (g.op("Cast", each, to=g.kind) for each in _sin_cos(g, angle))
    first, second = g.ops("Split", 2, x, axis=-1)
    turned = (
        g.op("Sub", g.op("Mul", first, cos), g.op("Mul", second, sin)),
        g.op("Add", g.op("Mul", second, cos), g.op("Mul", first, sin)),
    )
    return g.op("Concat", *turned, axis=-1)


def _times(g: Graph, x: Value, axis: int) -> Value:
    """(T, 1), the steps of x along the axis in float64, as the angles are computed."""
    return g.op("Unsqueeze", g.op("Cast", g.positions(x, axis), to=_DOUBLE), g.ints(1))


def _sin_cos(g: Graph, angle: Value) -> tuple[Value, Value]:
    """The cosine is a shifted sine, because runtimes have no other in float64."""
    shifted = g.op("Add", angle, g.constant(np.asarray(math.pi / 2)))
    return g.op("Sin", angle), g.op("Sin", shifted)


def positional_encoding(g: Graph, layer: PositionalEncoding, x: Value) -> Value:
    """Sines and cosines for as many features as x has: pair i turns by base^(−2i/D) a step."""
    column = g.positions(x, 2)
    pair = g.op("Cast", g.op("Div", column, g.index(2)), to=_DOUBLE)
    features = g.op("Cast", g.size(x, 2), to=_DOUBLE)
    power = g.op("Div", g.op("Mul", pair, g.constant(np.asarray(-2.0))), features)
    frequency = g.op("Pow", g.constant(np.asarray(float(layer.base))), power)
    sin, cos = _sin_cos(g, g.op("Mul", _times(g, x, 1), frequency))
    even = g.op("Equal", g.op("Mod", column, g.index(2)), g.index(0))
    table = g.op("Where", even, sin, cos)
    return g.op("Add", x, g.op("Cast", table, to=g.kind))


def learned_positions(g: Graph, layer: LearnedPositions, x: Value) -> Value:
    rows = g.op("Gather", g.constant(layer.weight), g.positions(x, 1), axis=0)
    return g.op("Add", x, rows)


def add_norm(
    g: Graph, layer: AddNorm, x: Value, inner: Callable[[Value], Value] | None = None
) -> Value:
    """`inner` computes the inner layer where it takes more than x."""
    f = inner or (lambda z: g.layer(layer.inner, z))
    if layer.norm_position == "pre":
        return g.op("Add", x, f(g.layer(layer.norm, x)))
    return g.layer(layer.norm, g.op("Add", x, f(x)))


def block(
    g: Graph,
    layer: TransformerBlock,
    x: Value,
    memory: Value | None = None,
    *,
    visible: Value | None = None,
    memory_visible: Value | None = None,
) -> Value:
    """`visible` already has the order of a causal block, as `stack` and `alone` make it."""
    with g.within(layer):
        around = layer.layers["attention"]
        x = add_norm(g, around, x, _looking(g, around.inner, None, visible))
        if memory is not None:
            around = layer.layers["cross_attention"]
            x = add_norm(g, around, x, _looking(g, around.inner, memory, memory_visible))
        return g.layer(layer.layers["feed_forward"], x)


def _looking(
    g: Graph, attention: Any, memory: Value | None, visible: Value | None
) -> Callable[[Value], Value]:
    def look(z: Value) -> Value:
        with g.within(attention):
            return multi_head(g, attention, z, memory, visible=visible)

    return look


def alone(g: Graph, layer: TransformerBlock, x: Value) -> Value:
    if layer.cross:
        raise g.refusal(layer, "attends to a memory, an input of its own")
    return block(g, layer, x, visible=causal(g, x) if layer.causal else None)


def stack(
    g: Graph,
    layer: TransformerEncoder | TransformerDecoder,
    x: Value,
    memory: Value | None = None,
    *,
    visible: Value | None = None,
    memory_visible: Value | None = None,
) -> Value:
    """The blocks one after another; `visible` says which steps of x are no padding."""
    with g.within(layer):
        if layer.blocks[0].causal:
            visible = both(g, causal(g, x), visible)
        for each in layer.blocks:
            x = block(g, each, x, memory, visible=visible, memory_visible=memory_visible)
        return x if layer.norm is None else g.layer(layer.norm, x)


def decoder(g: Graph, layer: TransformerDecoder, x: Value) -> Value:
    raise g.refusal(layer, "attends to a memory, an input of its own")


RULES: Final[Mapping[type, Callable[..., Value]]] = {
    AddNorm: add_norm,
    LearnedPositions: learned_positions,
    MultiHeadAttention: multi_head,
    PositionalEncoding: positional_encoding,
    TransformerBlock: alone,
    TransformerDecoder: decoder,
    TransformerEncoder: stack,
}
