"""SequenceClassifier: a recurrent network with one label for each sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Unpack

import numpy as np
from array_api_compat import array_namespace

from handgrad.arrays import Array, Lengths
from handgrad.layers import Dense, Dropout
from handgrad.layers.base import Layer, Row, Shape, merge, part
from handgrad.layers.construction import FROM_SEED, InputSize, known
from handgrad.layers.inputs import in_own_type
from handgrad.layers.lengths import settled_lengths
from handgrad.layers.settings import CellSettings
from handgrad.layers.step_pooling import step_weights
from handgrad.models.sequence_tagger import recurrent_layer
from handgrad.ops.arguments import check_choice
from handgrad.ops.recurrence import blocks

POOLINGS: Final = ("state", "mean", "max", "last")


class Cache(NamedTuple):
    """The caches of the layers, and what the pooling needs.

    `recurrent.layers[layer][direction]` holds what the op kept, such as gate activations. `weights`
    say how much of each step was read: (N, T, 1), or (N, T, D) for pooling "max"; None where the
    final state was read. `y_shape` and `h_shape` are those of the recurrent layer's y and h.
    """

    recurrent: Any
    weights: Array | None
    dropout: Any
    head: Any
    y_shape: Shape
    h_shape: Shape


class SequenceClassifier(Layer):
    """Scores (N, K) for sequences x (N, T, input_size).

    Forward:  y_1 … y_T and the final state h from the recurrent layer,  r from one of them,
              scores = W r + b
    Backward: dr = Wᵀdscores,  to h or as w_t ⊙ dr to the steps,  then through time

    `pooling` says what r is. "state": the final state h of the last layer, of both directions side
    by side. Otherwise r = Σ w_t ⊙ y_t over the steps that count: their "mean"; their "max" in each
    feature, the first where several are equal; or the "last", where the reverse direction has seen
    a single step. A sequence of length 0 has r = 0.

    `cell`, `dropout` and `settings` are those of SequenceTagger; `head_dropout` acts on r, in
    training. Parameters are those of `recurrent` (PyTorch's names) and `head`.

    `lengths`, integers (N,), say how many steps of each sequence count; scores and gradients are
    then those of each sequence alone.

    Raises ShapeError for x that does not fit, ArgumentError for other settings.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 4, with one label
    in place of one at every step.
    """

    def __init__(
        self,
        input_size: InputSize,
        hidden_size: int,
        classes: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        cell: str = "lstm",
        head_dropout: float = 0.0,
        pooling: str = "state",
        **settings: Unpack[CellSettings],
    ) -> None:
        input_size = known(input_size)
        check_choice("SequenceClassifier", "pooling", pooling, POOLINGS)
        self.pooling = pooling
        self.recurrent = recurrent_layer(
            "SequenceClassifier", cell, input_size, hidden_size, rng=rng, **settings
        )
        self.features = self.recurrent.directions * self.recurrent.output_size
        self.dropout = Dropout(head_dropout, rng=rng) if head_dropout != 0 else None
        self.head = Dense(self.features, classes, rng=rng, dtype=settings.get("dtype", np.float32))
        self.layers: dict[str, Layer] = {"recurrent": self.recurrent, "head": self.head}
        if self.dropout is not None:
            self.layers["dropout"] = self.dropout

    @in_own_type
    def forward(
        self, x: Array, lengths: Lengths | None = None, *, training: bool = False
    ) -> tuple[Array, Cache]:
        (y, final), recurrent = self.recurrent.forward(x, lengths=lengths, training=training)
        xp = array_namespace(y)
        h = final[0] if isinstance(final, tuple) else final
        if self.pooling == "state":
            weights = None
            r = xp.concat(list(h[-self.recurrent.directions :]), axis=-1)
        else:
            settled = settled_lengths("SequenceClassifier", lengths, *y.shape[:2])
            weights = step_weights(y, settled, self.pooling)
            r = xp.sum(weights * y, axis=1)
        dropout = None
        if self.dropout is not None:
            r, dropout = self.dropout.forward(r, training=training)
        scores, head = self.head.forward(r)
        return scores, Cache(recurrent, weights, dropout, head, y.shape, h.shape)

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        found: dict[str, Mapping[str, Array]] = {}
        dr: Any
        dr, found["head"] = self.head.backward(dy, cache.head, gradients=part(gradients, "head"))
        if self.dropout is not None:
            dr, _ = self.dropout.backward(dr, cache.dropout)
        (dx, _), found["recurrent"] = self.recurrent.backward(
            self._of_outputs(dr, cache),
            cache.recurrent,
            gradients=part(gradients, "recurrent"),
            input_gradient=input_gradient,
        )
        if gradients is None:
            gradients = merge({name: found[name] for name in ("recurrent", "head")})
        return dx, gradients

    def _of_outputs(self, dr: Any, cache: Cache) -> tuple[Array, Any]:
        """The gradients of the recurrent layer's y and final state."""
        if cache.weights is not None:
            return cache.weights * dr[:, None], None
        xp = array_namespace(dr)
        dlast = xp.stack(blocks(dr, self.recurrent.directions), axis=0)
        below = (cache.h_shape[0] - self.recurrent.directions, *cache.h_shape[1:])
        dh = xp.concat((xp.zeros(below, dtype=dr.dtype), dlast), axis=0)
        dstate = (dh, None) if len(self.recurrent.states) > 1 else dh
        return xp.zeros(cache.y_shape, dtype=dr.dtype), dstate

    def output_shape(self, input_shape: Shape) -> Shape:
        self.recurrent.output_shape(input_shape)
        return self.head.output_shape((self.features,))

    def flops(self, input_shape: Shape) -> int:
        """Without the pooling, which is little."""
        return sum(row.flops for row in self.rows(input_shape))

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        prefix = f"{name}." if name else ""
        return [
            *self.recurrent.rows(input_shape, prefix + "recurrent"),
            *self.head.rows((self.features,), prefix + "head"),
        ]
