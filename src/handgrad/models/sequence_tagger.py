"""SequenceTagger: a recurrent network with scores at every step, trained through time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Unpack

import numpy as np

from handgrad.arrays import Array, Lengths
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.steps import active_steps, in_time_order
from handgrad.layers import GRU, LSTM, RNN, Dense, Embedding, LeakyRNN
from handgrad.layers.base import InputGradients, Layer, Row, Shape, merge, part
from handgrad.layers.construction import FROM_SEED, InputSize, known
from handgrad.layers.inputs import in_own_type
from handgrad.layers.lengths import settled_lengths
from handgrad.layers.recurrent import Recurrent, State
from handgrad.layers.settings import CellSettings
from handgrad.ops.arguments import check_choice

CELLS: Final[dict[str, type[Recurrent]]] = {
    "lstm": LSTM,
    "gru": GRU,
    "rnn": RNN,
    "leaky_rnn": LeakyRNN,
}


def recurrent_layer(
    model: str, cell: str, input_size: int, hidden_size: int, **settings: Any
) -> Recurrent:
    """The recurrent layer that `cell` names; `model` is named in errors.

    Raises ArgumentError for an unknown cell and for leaky_rnn without alpha.
    """
    check_choice(model, "cell", cell, tuple(CELLS))
    if cell == "leaky_rnn" and "alpha" not in settings:
        raise ArgumentError(f"{model}: alpha is missing; allowed with cell 'leaky_rnn': 0 to 1")
    return CELLS[cell](input_size, hidden_size, **settings)


class Cache(NamedTuple):
    """The caches of the layers, which steps are real (None: all), and the final state.

    `recurrent.layers[layer][direction]` holds what the op kept, such as gate activations.
    `state` is to be given to forward with what follows.
    """

    embedding: Any
    recurrent: Any
    head: Any
    real: Array | None
    state: State


class SequenceTagger(Layer):
    """Scores (N, T, K) for sequences x (N, T, input_size), or tokens (N, T) with a `vocabulary`.

    Forward:  h_t = f(x_t, h_{t−1}),  scores_t = V h_t + c;  softmax and loss at every step outside
    Backward: through time; for h_t = tanh(U x_t + W h_{t−1} + b), with δ_t = dscores_t,
              dh_t = Vᵀδ_t + Wᵀda_{t+1},  da_t = dh_t ⊙ (1 − h_t²),  without da_{T+1} at the end,
              dV = Σ δ_t h_tᵀ,  dc = Σ δ_t,  dU = Σ da_t x_tᵀ,  dW = Σ da_t h_{t−1}ᵀ,  db = Σ da_t,
              dx_t = Uᵀda_t,  dh_0 = Wᵀda_1

    `cell` is lstm, gru, rnn or leaky_rnn; `settings` are further ones of its layer, such as
    `nonlinearity` of RNN and `alpha` of LeakyRNN, which it needs. `dropout` acts between layers, in
    training. With a `vocabulary`, tokens 0 to vocabulary − 1 are embedded in input_size features.
    Parameters are those of `embedding`, `recurrent` (PyTorch's names) and `head`.

        scores, cache = model.forward(x, lengths)
        dx, gradients = model.backward(dscores, cache)

    `lengths`, integers (N,), say how many steps of each sequence count: scores are 0 after them,
    dscores there has no influence, and all gradients are those of each sequence alone.

    A long sequence goes in windows: `state` is the `cache.state` of the window before, (layers ·
    directions, N, size), of LSTM a pair. What backward gives for one window takes the state as a
    constant, which is truncated backpropagation through time. Where forward was given a state,
    backward gives (dx, dstate), and its `dstate` takes the gradient of `cache.state`, so that
    windows can also be chained without truncation. Tokens have no gradient: None stands for dx, and
    with a state dstate alone.

    Raises ShapeError for x or a state that do not fit, ArgumentError for other settings.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 4, with softmax −
    one-hot in (11) and outer products in (11), (12).
    """

    forward_capturable = True

    def __init__(
        self,
        input_size: InputSize,
        hidden_size: int,
        classes: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        cell: str = "lstm",
        vocabulary: int | None = None,
        **settings: Unpack[CellSettings],
    ) -> None:
        input_size = known(input_size)
        dtype = settings.get("dtype", np.float32)
        self.takes_tokens = vocabulary is not None
        self.embedding = None
        self.layers: dict[str, Layer] = {}
        if vocabulary is not None:
            self.embedding = Embedding(vocabulary, input_size, rng=rng, dtype=dtype)
            self.layers["embedding"] = self.embedding
        self.recurrent = recurrent_layer(
            "SequenceTagger", cell, input_size, hidden_size, rng=rng, **settings
        )
        features = self.recurrent.directions * self.recurrent.output_size
        self.head = Dense(features, classes, rng=rng, dtype=dtype)
        self.layers |= {"recurrent": self.recurrent, "head": self.head}

    @in_own_type
    def forward(
        self,
        x: Array,
        lengths: Lengths | None = None,
        state: State | None = None,
        *,
        training: bool = False,
    ) -> tuple[Array, Cache]:
        embedding = None
        if self.embedding is not None:
            _check_tokens(tuple(x.shape))
            x, embedding = self.embedding.forward(x)
        (h, final), recurrent = self.recurrent.forward(x, state, lengths=lengths, training=training)
        scores, head = self.head.forward(h)
        lengths = settled_lengths("SequenceTagger", lengths, *h.shape[:2])
        real = active_steps(lengths, h.shape[1], reverse=False)
        scores = in_time_order(scores, real, reverse=False)
        return scores, Cache(embedding, recurrent, head, real, final)

    def backward(  # type: ignore[override]  # of several inputs a tuple
        self,
        dy: Array,
        cache: Cache,
        *,
        dstate: State | None = None,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[InputGradients | tuple[Array, State], Mapping[str, Array]]:
        found: dict[str, Mapping[str, Array]] = {}
        dx: Any
        dscores = in_time_order(dy, cache.real, reverse=False)
        dh, found["head"] = self.head.backward(
            dscores, cache.head, gradients=part(gradients, "head")
        )
        (dx, dstate0), found["recurrent"] = self.recurrent.backward(
            (dh, dstate),
            cache.recurrent,
            gradients=part(gradients, "recurrent"),
            input_gradient=input_gradient or self.embedding is not None,
        )
        if self.embedding is not None:
            dx, found["embedding"] = self.embedding.backward(
                dx, cache.embedding, gradients=part(gradients, "embedding")
            )
        if gradients is None:
            gradients = merge({name: found[name] for name in self.layers})
        if not input_gradient:
            return None, gradients
        if dstate0 is None:
            return dx, gradients
        return (dstate0 if dx is None else (dx, dstate0)), gradients

    def output_shape(self, input_shape: Shape) -> Shape:
        if self.embedding is not None and len(input_shape) != 1:
            raise ShapeError(f"SequenceTagger: an example has shape {input_shape}; allowed: (T,)")
        for layer in self.layers.values():
            input_shape = layer.output_shape(input_shape)
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        return sum(row.flops for row in self.rows(input_shape))

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        self.output_shape(input_shape)
        prefix = f"{name}." if name else ""
        rows = []
        for child_name, layer in self.layers.items():
            rows += layer.rows(input_shape, prefix + child_name)
            input_shape = layer.output_shape(input_shape)
        return rows


def _check_tokens(shape: Shape) -> None:
    if len(shape) != 2:
        raise ShapeError(f"SequenceTagger: tokens have shape {shape}; allowed: (N, T)")
