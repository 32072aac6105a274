"""Models from one sequence to another, with the right tokens before as inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from handgrad.models import Seq2Seq, Transformer
from handgrad.models.attention_decoder import AttentionDecoder
from handgrad.onnx.export import attention, recurrent
from handgrad.onnx.graph import Graph, Value

#: Keeps the cosine with a state of zeros defined, as in `hg.ops.cosine_attention`.
_EPS: Final = 1e-8


def transformer(
    g: Graph,
    model: Transformer,
    sources: Value,
    inputs: Value,
    source_lengths: Value | None = None,
    target_lengths: Value | None = None,
) -> Value:
    def embed(side: str, tokens: Value) -> Value:
        x = g.layer(model.tables[side], tokens)
        x = g.op("Mul", x, g.number(math.sqrt(model.features)))
        return g.layer(model.positions[side], x)

    x = embed("source", sources)
    source_visible = attention.among(g, x, source_lengths)
    memory = attention.stack(g, model.encoder, x, visible=source_visible)
    z = embed("target", inputs)
    z = attention.stack(
        g,
        model.decoder,
        z,
        memory,
        visible=attention.among(g, z, target_lengths),
        memory_visible=source_visible,
    )
    if model.head is not None:
        return g.layer(model.head, z)
    return g.linear(z, model.tables["target"].weight)


def seq2seq(
    g: Graph,
    model: Seq2Seq,
    sources: Value,
    inputs: Value,
    source_lengths: Value | None = None,
    target_lengths: Value | None = None,
) -> Value:
    x = sources if model.source is None else g.layer(model.source, sources)
    h, state = recurrent.run(g, model.encoder, x, source_lengths)
    s0 = g.layer(model.first, g.op("Gather", state, g.index(-1), axis=0))
    with g.within(model.decoder):
        cell, memory = model.decoder.cell, model.decoder.sizes["h"]
        if model.target is None:
            shape = g.op("Concat", g.op("Shape", inputs), g.ints(len(cell.bias_ih)), axis=0)
            a = g.op("Expand", g.constant(cell.bias_ih), shape)
        else:
            e = g.layer(model.target, inputs)
            a = _product(g, e, cell.weight_ih, memory, memory + model.decoder.sizes["e"])
            a = g.op("Add", a, g.constant(cell.bias_ih))
        visible = None if source_lengths is None else g.within_lengths(h, source_lengths)
        s = decode(g, model.decoder, a, h, s0, visible)
    logits = g.layer(model.head, s)
    if target_lengths is None:
        return logits
    return g.masked(logits, g.op("Unsqueeze", g.within_lengths(logits, target_lengths), g.ints(2)))


def _product(g: Graph, x: Value, weight: Any, first: int, end: int) -> Value:
    """x times these columns of a weight."""
    columns = g.op("Slice", g.constant(weight), g.ints(first), g.ints(end), g.ints(1))
    return g.op("MatMul", x, g.op("Transpose", columns, perm=[1, 0]))


def decode(
    g: Graph, layer: AttentionDecoder, a: Value, h: Value, s0: Value, visible: Value | None
) -> Value:
    """The states (N, T, H) of all steps by a loop; a (N, T, G) is the inputs' part of each."""
    keys, compare = SCORES[layer.score.kind](g, layer.score, h)
    values = _product(g, h, layer.cell.weight_ih, 0, layer.sizes["h"])
    weight_hh, bias_hh = g.turned(layer.cell.weight_hh), g.constant(layer.cell.bias_hh)

    def body(
        g: Graph, states: Sequence[Value], items: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        (s,), (a_step,) = states, items
        alpha = g.softmax(compare(g, s, keys), visible)
        context = g.op("MatMul", g.op("Unsqueeze", alpha, g.ints(1)), values)
        a_input = g.op("Add", a_step, g.op("Squeeze", context, g.ints(1)))
        a_state = g.op("Add", g.op("MatMul", s, weight_hh), bias_hh)
        new = CELLS[layer.cell.kind](g, a_input, a_state, s)
        return [new], [new]

    _, (s,) = g.scan(body, [s0], [g.op("Transpose", a, perm=[1, 0, 2])])
    return g.op("Transpose", s, perm=[1, 0, 2])


# -- scores: the keys of a memory, and how a state is compared with them --------------------------

Compare = Callable[[Graph, Value, Value], Value]


def additive(g: Graph, score: Any, h: Value) -> tuple[Value, Compare]:
    weight_s = g.turned(score.weight_s)
    v = g.op("Unsqueeze", g.constant(score.v), g.ints(1))

    def compare(g: Graph, s: Value, keys: Value) -> Value:
        query = g.op("Unsqueeze", g.op("MatMul", s, weight_s), g.ints(1))
        u = g.op("Tanh", g.op("Add", keys, query))
        return g.op("Squeeze", g.op("MatMul", u, v), g.ints(2))

    return g.linear(h, score.weight_h), compare


def cosine(g: Graph, score: Any, h: Value) -> tuple[Value, Compare]:
    def unit(g: Graph, x: Value) -> Value:
        square = g.op("ReduceSum", g.op("Mul", x, x), g.ints(-1))
        return g.op("Div", x, g.op("Sqrt", g.op("Add", square, g.number(_EPS))))

    def compare(g: Graph, s: Value, keys: Value) -> Value:
        return _products(g, keys, unit(g, s))

    return unit(g, h), compare


def dot(g: Graph, score: Any, h: Value) -> tuple[Value, Compare]:
    return g.op("Mul", h, g.number(1.0 / math.sqrt(score.size))), lambda g, s, k: _products(g, k, s)


def _products(g: Graph, keys: Value, s: Value) -> Value:
    """k_i·s for every key."""
    pairs = g.op("MatMul", keys, g.op("Unsqueeze", s, g.ints(2)))
    return g.op("Squeeze", pairs, g.ints(2))


SCORES: Final = {"additive": additive, "cosine": cosine, "dot": dot}


# -- cells: from the parts of the inputs and of the state to the next state -----------------------


def _gru(g: Graph, a_input: Value, a_state: Value, s: Value) -> Value:
    a_r, a_z, a_n = g.ops("Split", 3, a_input, axis=-1)
    h_r, h_z, u = g.ops("Split", 3, a_state, axis=-1)
    r = g.op("Sigmoid", g.op("Add", a_r, h_r))
    z = g.op("Sigmoid", g.op("Add", a_z, h_z))
    n = g.op("Tanh", g.op("Add", a_n, g.op("Mul", r, u)))
    return g.op("Add", n, g.op("Mul", z, g.op("Sub", s, n)))


def _plain(kind: str) -> Callable[[Graph, Value, Value, Value], Value]:
    return lambda g, a_input, a_state, s: g.op(kind, g.op("Add", a_input, a_state))


CELLS: Final = {"gru": _gru, "sigmoid": _plain("Sigmoid"), "tanh": _plain("Tanh")}

RULES: Final[Mapping[type, Callable[..., Value]]] = {Seq2Seq: seq2seq, Transformer: transformer}
