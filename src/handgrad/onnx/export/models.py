"""Models of one sequence, image or row: what goes into them, and their graphs.

Inputs have the names of forward's arguments. A model that takes `lengths` has them as an input
where they are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from handgrad.layers import StepPooling
from handgrad.models import Bert, ClsEncoder, SequenceClassifier, SequenceTagger, TwoLayerNet
from handgrad.models.decoder_only import DecoderOnly
from handgrad.models.mean_pooling import LEAST
from handgrad.onnx.export import attention, recurrent
from handgrad.onnx.export.elementwise import standardized
from handgrad.onnx.graph import Graph, Value


def two_layer_net(g: Graph, model: TwoLayerNet, x: Value) -> Value:
    x_hat = standardized(g, x, (1, 2), model.eps) if model.standardize == "example" else x
    product = g.op("Transpose", g.linear(x_hat, model.weight1), perm=[0, 2, 1])
    h1 = g.op("Relu", g.op("Add", product, g.constant(model.bias1)))
    return g.linear(g.op("Flatten", h1, axis=1), model.weight2, model.bias2)


def cls_encoder(g: Graph, model: ClsEncoder, x: Value) -> Value:
    """The class's row alone, as forward computes it; what x has no part in is computed once."""
    x_hat = standardized(g, x, (1, 2), model.eps) if model.standardize == "example" else x
    cls = g.op("Unsqueeze", g.constant(model.cls_token), g.ints(0))
    names = ("weight1", "weight_q", "weight_k", "weight_v", "weight_t", "weight2")
    w1, w_q, w_k, w_v, w_t, w2 = (g.constant(getattr(model, name)) for name in names)
    q = g.op("Mul", g.op("MatMul", cls, w_q), g.number(1.0 / math.sqrt(model.d2)))
    u = g.op("MatMul", w_k, g.op("Transpose", q, perm=[1, 0]))
    steps = g.op("MatMul", x_hat, g.op("MatMul", w1, u))
    one = g.op("Concat", g.size(x, 0), g.ints(1, 1), axis=0)
    own = g.op("Expand", g.op("MatMul", cls, u), one)
    scores = g.op("Transpose", g.op("Concat", steps, own, axis=1), perm=[0, 2, 1])
    s = g.op("Softmax", scores, axis=-1)
    last = g.op("Gather", s, g.ints(-1), axis=2)
    of_steps = g.op("Slice", s, g.ints(0), g.ints(-1), g.ints(2))
    weighed = g.op("MatMul", g.op("MatMul", of_steps, x_hat), w1)
    context = g.op("Add", weighed, g.op("Mul", last, cls))
    h2 = g.op("Add", g.op("MatMul", context, w_v), g.op("MatMul", cls, w_t))
    return g.op("Squeeze", g.op("MatMul", h2, w2), g.ints(1))


def tagger(g: Graph, model: SequenceTagger, x: Value, lengths: Value | None = None) -> Value:
    if model.embedding is not None:
        x = g.layer(model.embedding, x)
    h, _ = recurrent.run(g, model.recurrent, x, lengths)
    scores = g.layer(model.head, h)
    if lengths is None:
        return scores
    return g.masked(scores, g.op("Unsqueeze", g.within_lengths(scores, lengths), g.ints(2)))


def classifier(
    g: Graph, model: SequenceClassifier, x: Value, lengths: Value | None = None
) -> Value:
    y, h = recurrent.run(g, model.recurrent, x, lengths)
    if model.pooling == "state":
        r = g.op("Reshape", g.op("Transpose", h, perm=[1, 0, 2]), g.ints(0, -1))
    else:
        r = _pooled(g, model.pooling, y, lengths)
    return g.layer(model.head, r)


def _pooled(g: Graph, pooling: str, y: Value, lengths: Value | None) -> Value:
    """(N, D) of y (N, T, D), which is 0 behind the end of a sequence."""
    if lengths is None:
        if pooling == "last":
            return g.op("Gather", y, g.index(-1), axis=1)
        return g.op({"mean": "ReduceMean", "max": "ReduceMax"}[pooling], y, axes=[1], keepdims=0)
    ends = g.op("Unsqueeze", lengths, g.ints(1))
    if pooling == "mean":
        steps = g.op("Cast", g.op("Max", ends, g.index(1)), to=g.kind)
        return g.op("Div", g.op("ReduceSum", y, g.ints(1), keepdims=0), steps)
    if pooling == "last":
        is_last = g.op("Equal", g.positions(y, 1), g.op("Sub", ends, g.index(1)))
        here = g.op("Unsqueeze", is_last, g.ints(2))
        return g.op("ReduceSum", g.masked(y, here), g.ints(1), keepdims=0)
    real = g.op("Unsqueeze", g.within_lengths(y, lengths), g.ints(2))
    least = g.number(float(np.finfo(g.dtype).min))
    largest = g.op("ReduceMax", g.op("Where", real, y, least), axes=[1], keepdims=0)
    return g.masked(largest, g.op("Greater", ends, g.index(0)))


def decoder_only(g: Graph, model: DecoderOnly, tokens: Value) -> Value:
    x = g.layer(model.tokens, tokens)
    if model.positions is not None:
        x = g.layer(model.positions, x)
    x = attention.stack(g, model.blocks, x)
    if model.head is not None:
        return g.layer(model.head, x)
    return g.linear(x, model.tokens.weight)


def bert(g: Graph, model: Bert, tokens: Value, lengths: Value | None = None) -> Value:
    """All tokens of type 0, as forward has them where no types are given."""
    x = g.layer(model.positions, g.layer(model.tokens, tokens))
    first = g.op("Gather", g.constant(model.types.weight), g.index(0), axis=0)
    x = g.layer(model.norm, g.op("Add", x, first))
    h = attention.stack(g, model.blocks, x, visible=attention.among(g, x, lengths))
    if model.pooler is not None:
        return g.layer(model.pooler, g.op("Gather", h, g.index(0), axis=1))
    return h if model.pooling == "none" else _mean(g, model, h, lengths)


def _mean(g: Graph, model: Bert, h: Value, lengths: Value | None) -> Value:
    """The mean over the tokens that are there, 0 where there are none."""
    if lengths is None:
        mean = g.op("ReduceMean", h, axes=[1], keepdims=0)
    else:
        there = g.op("Unsqueeze", g.within_lengths(h, lengths), g.ints(2))
        total = g.op("ReduceSum", g.masked(h, there), g.ints(1), keepdims=0)
        steps = g.op("Max", g.op("Unsqueeze", lengths, g.ints(1)), g.index(1))
        mean = g.op("Div", total, g.op("Cast", steps, to=g.kind))
    if not model.normalize:
        return mean
    square = g.op("ReduceSum", g.op("Mul", mean, mean), g.ints(1), keepdims=1)
    length = g.op("Max", g.op("Sqrt", square), g.number(LEAST))
    return g.op("Div", mean, length)


RULES: Final[Mapping[type, Callable[..., Value]]] = {
    Bert: bert,
    ClsEncoder: cls_encoder,
    DecoderOnly: decoder_only,
    SequenceClassifier: classifier,
    SequenceTagger: tagger,
    StepPooling: lambda g, layer, x: _pooled(g, layer.pooling, x, None),
    TwoLayerNet: two_layer_net,
}
