"""A transformer encoder with one label for each sequence, or one for each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.layers import Dense, PositionalEncoding, TransformerEncoder
from handgrad.layers.base import Layer, Shape, merge, part
from handgrad.layers.inputs import in_own_type
from handgrad.layers.step_pooling import step_weights


class Cache(NamedTuple):
    """The caches of the layers; the weights of the steps in the mean, None for labels of steps."""

    embed: Any
    positions: Any
    encoder: Any
    weights: Array | None
    head: Any


class SequenceEncoder(Layer):
    """Scores (N, K), or (N, T, K) where `each_step`, for sequences x (N, T, features).

    Forward:  h = encoder(W x + b + P),  r the mean of h over the steps that count,
              scores = V r + c
    Backward: dr = Vᵀdscores, which every step of n gets as dr/n, then through the encoder

    `lengths` (N,) say how many steps of each sequence count. Each step sees all of these; P are
    sines and cosines of the position, without which the order of the steps would be nothing.
    """

    def __init__(
        self,
        features: int,
        width: int,
        classes: int,
        *,
        rng: np.random.Generator,
        blocks: int = 1,
        heads: int = 4,
        dropout: float = 0.0,
        each_step: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        self.each_step = each_step
        self.embed = Dense(features, width, rng=rng, dtype=dtype)
        self.positions = PositionalEncoding()
        self.encoder = TransformerEncoder(
            blocks, width, heads, 4 * width, rng=rng, dropout=dropout, dtype=dtype
        )
        self.head = Dense(width, classes, rng=rng, dtype=dtype)
        self.layers = {"embed": self.embed, "encoder": self.encoder, "head": self.head}

    @in_own_type
    def forward(
        self, x: Array, lengths: Array | None = None, *, training: bool = False
    ) -> tuple[Array, Cache]:
        h, embed = self.embed.forward(x)
        h, positions = self.positions.forward(h)
        h, encoder = self.encoder.forward(h, lengths=lengths, training=training)
        weights = None
        if not self.each_step:
            weights = step_weights(h, lengths, "mean")
            h = np.sum(weights * h, axis=1)
        scores, head = self.head.forward(h)
        return scores, Cache(embed, positions, encoder, weights, head)

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        found: dict[str, Mapping[str, Array]] = {}
        dh: Any
        dh, found["head"] = self.head.backward(dy, cache.head, gradients=part(gradients, "head"))
        if cache.weights is not None:
            dh = cache.weights * dh[:, None]
        dh, found["encoder"] = self.encoder.backward(
            dh, cache.encoder, gradients=part(gradients, "encoder")
        )
        dh, _ = self.positions.backward(dh, cache.positions)
        dx, found["embed"] = self.embed.backward(
            dh,
            cache.embed,
            gradients=part(gradients, "embed"),
            input_gradient=input_gradient,
        )
        if gradients is None:
            gradients = merge({name: found[name] for name in self.layers})
        return dx, gradients

    def output_shape(self, input_shape: Shape) -> Shape:
        steps, width = self.embed.output_shape(input_shape)
        return self.head.output_shape((steps, width) if self.each_step else (width,))
