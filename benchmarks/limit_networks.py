"""Networks of every kind that has a limit, at any width, with weights of given variances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

import handgrad as hg
from handgrad.layers.base import walk

WEIGHT, BIAS = 1.5, 0.2
#: Examples of vectors, sequences with their lengths, images, tokens.
RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((5, 6))
SEQUENCES = RNG.standard_normal((4, 4, 6))
LENGTHS = np.array([4, 3, 4, 1])
IMAGES = RNG.standard_normal((3, 2, 5, 5))
TOKENS = RNG.integers(0, 7, (4, 3))

Make = Callable[[int, int], hg.Sequential]
F8 = {"dtype": np.float64}


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def dense(inputs: int, outputs: int, activation: str = "identity") -> hg.Dense:
    return hg.Dense(inputs, outputs, rng=rng(), activation=activation, **F8)


def stacked(first: int, *parts: Callable[[int], list[Any]]) -> Make:
    """A network of a layer from `first` features, these parts, and a linear read-out."""

    def make(width: int, outputs: int) -> hg.Sequential:
        layers = [dense(first, width), *(layer for part in parts for layer in part(width))]
        return hg.Sequential(*layers, dense(width, outputs))

    return make


def feed_forward(activation: str, depth: int) -> Make:
    def make(width: int, outputs: int) -> hg.Sequential:
        sizes = [6, *[width] * depth]
        return hg.Sequential(
            *(dense(a, b, activation) for a, b in pairwise(sizes)), dense(width, outputs)
        )

    return make


def normalized(norm: Callable[..., Any], depth: int) -> Make:
    def part(width: int) -> list[Any]:
        return [dense(width, width, "relu"), norm(width, **F8)]

    return stacked(6, *[part] * depth)


def tied(depth: int) -> Make:
    """One layer, applied again and again."""

    def part(width: int) -> list[Any]:
        return [dense(width, width, "tanh")] * depth

    return stacked(6, part)


def residual(depth: int) -> Make:
    def part(width: int) -> list[Any]:
        inner = hg.Sequential(dense(width, width, "relu"), dense(width, width))
        return [hg.Residual(inner)]

    return stacked(6, *[part] * depth)


def convolution(depth: int, pool: str) -> Make:
    """Images of 5 × 5, read out after flattening or after a global mean."""

    def make(width: int, outputs: int) -> hg.Sequential:
        layers: list[Any] = [
            hg.Conv2d(
                2 if i == 0 else width, width, 3, padding=1, rng=rng(), activation="relu", **F8
            )
            for i in range(depth)
        ]
        features = width
        if pool == "global":
            layers.append(hg.AvgPool2d("global"))
        elif pool == "max":
            layers.append(hg.MaxPool2d(2, 2))
            features = 4 * width
        else:
            features = 25 * width
        return hg.Sequential(*layers, hg.Flatten(), dense(features, outputs))

    return make


def sequences(depth: int, pool: bool = False) -> Make:
    """A convolution over time; with `pool` maxima of two steps, and their mean."""

    def make(width: int, outputs: int) -> hg.Sequential:
        layers: list[Any] = [
            hg.Conv1d(
                4 if i == 0 else width, width, 3, padding=1, rng=rng(), activation="relu", **F8
            )
            for i in range(depth)
        ]
        if pool:
            layers += [hg.MaxPool1d(2), hg.AvgPool1d("global")]
        features = width if pool else 6 * width
        return hg.Sequential(*layers, hg.Flatten(), dense(features, outputs))

    return make


def recurrent(cell: str, depth: int, **settings: Any) -> Make:
    def make(width: int, outputs: int) -> Any:
        return hg.SequenceClassifier(
            6, width, outputs, rng=rng(), cell=cell, num_layers=depth, **F8, **settings
        )

    return make


def leaky(depth: int) -> Make:
    def make(width: int, outputs: int) -> hg.Sequential:
        layer = hg.LeakyRNN(6, width, depth, rng=rng(), alpha=0.4, **F8)
        return hg.Sequential(layer, hg.LastStep(), dense(width, outputs))

    return make


def transformer(depth: int, norm: str) -> Make:
    """Blocks whose scores are divided by the size of a head, not by its root."""

    def part(width: int) -> list[Any]:
        block = hg.TransformerBlock(width, 2, 2 * width, rng=rng(), norm=norm, causal=True, **F8)
        block.layers["attention"].inner.scale = 2.0 / (width // 2)  # type: ignore[attr-defined]
        return [block]

    return stacked(6, *[part] * depth, lambda width: [hg.LastStep()])


def tied_attention(depth: int) -> Make:
    """Yang's transformer: queries, keys and values are one vector, so that scores are not 0."""

    def part(width: int) -> list[Any]:
        sizes = dict.fromkeys(("q_proj_size", "k_proj_size", "v_proj_size", "o_proj_size"), 0)
        attention = hg.MultiHeadAttention(width, 1, rng=rng(), scale=1.0 / width, **sizes, **F8)
        return [
            hg.AddNorm(attention, width, norm="post", **F8),
            hg.AddNorm(hg.FeedForward(width, width, rng=rng(), **F8), width, norm="post", **F8),
        ]

    return stacked(6, *[part] * depth, lambda width: [hg.LastStep()])


def embedded(depth: int) -> Make:
    def make(width: int, outputs: int) -> hg.Sequential:
        layers = (
            hg.Embedding(7, width, rng=rng(), **F8),
            hg.LSTM(width, width, depth, rng=rng(), **F8),
        )
        return hg.Sequential(*layers, hg.LastStep(), dense(width, outputs))

    return make


def batch_normalized(depth: int) -> Make:
    def part(width: int) -> list[Any]:
        return [dense(width, width), hg.BatchNorm(width, activation="relu", **F8)]

    return stacked(6, *[part] * depth)


class Case:
    """One kind of network: how it is made for a depth, and its examples."""

    def __init__(self, make: Callable[[int], Make], x: Any, *, ragged: bool = False) -> None:
        self.make = make
        self.x = x
        self.lengths = LENGTHS if ragged else None
        self.settings: dict[str, Any] = {"lengths": LENGTHS} if ragged else {}


CASES = {
    "relu": Case(lambda depth: feed_forward("relu", depth), VECTORS),
    "leaky_relu": Case(lambda depth: feed_forward("leaky_relu", depth), VECTORS),
    "erf": Case(lambda depth: feed_forward("erf", depth), VECTORS),
    "gelu": Case(lambda depth: feed_forward("gelu", depth), VECTORS),
    "tanh": Case(lambda depth: feed_forward("tanh", depth), VECTORS),
    "sigmoid": Case(lambda depth: feed_forward("sigmoid", depth), VECTORS),
    "silu": Case(lambda depth: feed_forward("silu", depth), VECTORS),
    "layer_norm": Case(lambda depth: normalized(hg.LayerNorm, depth), VECTORS),
    "rms_norm": Case(lambda depth: normalized(hg.RMSNorm, depth), VECTORS),
    "one layer twice": Case(lambda depth: tied(depth + 1), VECTORS),
    "residual": Case(residual, VECTORS),
    "conv2d, flattened": Case(lambda depth: convolution(depth, "flatten"), IMAGES),
    "conv2d, global mean": Case(lambda depth: convolution(depth, "global"), IMAGES),
    "conv2d, max_pool2d": Case(lambda depth: convolution(depth, "max"), IMAGES),
    "conv1d": Case(sequences, np.ascontiguousarray(SEQUENCES)),
    "conv1d, pooled": Case(lambda depth: sequences(depth, pool=True), SEQUENCES),
    "rnn": Case(lambda depth: recurrent("rnn", depth), SEQUENCES, ragged=True),
    "rnn, bidirectional": Case(
        lambda depth: recurrent("rnn", depth, bidirectional=True, pooling="mean"),
        SEQUENCES,
        ragged=True,
    ),
    "leaky_rnn": Case(leaky, SEQUENCES),
    "gru": Case(lambda depth: recurrent("gru", depth), SEQUENCES, ragged=True),
    "lstm": Case(lambda depth: recurrent("lstm", depth), SEQUENCES, ragged=True),
    "embedding": Case(embedded, TOKENS),
    "attention, pre-norm": Case(lambda depth: transformer(depth, "pre"), SEQUENCES),
    "attention, post-norm": Case(lambda depth: transformer(depth, "post"), SEQUENCES),
    "attention, tied": Case(tied_attention, SEQUENCES),
    "batch_norm": Case(batch_normalized, RNG.standard_normal((8, 6))),
}


def variances(model: Any) -> Iterator[tuple[str, np.ndarray, float]]:
    """Every parameter that is drawn, with the variance of its entries."""
    tables = {f"{name}.weight" for name, layer in walk(model) if isinstance(layer, hg.Embedding)}
    for name, array in model.parameters.items():
        leaf = name.rpartition(".")[2]
        if leaf.startswith("bias"):
            yield name, array, BIAS
        elif name in tables:
            yield name, array, WEIGHT
        elif leaf.startswith("weight"):
            yield name, array, WEIGHT / float(np.prod(array.shape[1:]))


def redrawn(model: Any, seed: int) -> Any:
    """The model with normal weights of these variances."""
    drawn = np.random.default_rng(seed)
    for _, array, variance in variances(model):
        array[...] = drawn.normal(0.0, np.sqrt(variance), array.shape)
    return model


def output(model: Any, case: Case) -> np.ndarray:
    """The model's output on the case's examples, with the batch statistics of training."""
    y, _ = model.forward(case.x, training=True, **case.settings)
    return np.asarray(y)


def tangent(model: Any, case: Case) -> np.ndarray:
    """J Jᵀ of a model of one output, of every drawn parameter as its deviation times a normal one.

    J holds the gradients of the output of every example, one backward for each.
    """
    y, cache = model.forward(case.x, training=True, **case.settings)
    rows = []
    for i in range(len(y)):
        dy = np.zeros_like(y)
        dy[i] = 1.0
        rows.append(model.backward(dy, cache)[1])
    found = np.zeros((len(y), len(y)))
    for name, _, variance in variances(model):
        of_parameter = [row[name] for row in rows]
        found += variance * np.array([[np.vdot(a, b) for b in of_parameter] for a in of_parameter])
    return found
