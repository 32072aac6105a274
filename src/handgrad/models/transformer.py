"""Transformer: from one sequence of tokens to another, by attention alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Annotated, Any, Final, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array, Lengths
from handgrad.dispatch import SKIP
from handgrad.errors import ArgumentError, ShapeError
from handgrad.keywords import selected, with_defaults
from handgrad.layers.attention import MultiHeadAttention
from handgrad.layers.base import Layer, Row, Shape, merge, part
from handgrad.layers.construction import FROM_SEED, PairShape
from handgrad.layers.dense import Dense
from handgrad.layers.embedding import Embedding
from handgrad.layers.inputs import in_own_type
from handgrad.layers.lengths import settled_lengths
from handgrad.layers.positions import LearnedPositions, PositionalEncoding
from handgrad.layers.settings import StackSettings
from handgrad.layers.transformer import Past, TransformerDecoder, TransformerEncoder, choose
from handgrad.ops import dense, dropout
from handgrad.ops.arguments import check_choice

POSITIONS: Final = ("sinusoidal", "learned")

Positions = PositionalEncoding | LearnedPositions


class Embedded(NamedTuple):
    """The caches from tokens to features: table, positions, dropout."""

    tokens: Any
    positions: Any
    dropout: Any


class Cache(NamedTuple):
    """The caches of the steps; `Transformer.attention_maps` reads the attention weights."""

    source: Embedded
    encoder: Any
    target: Embedded
    decoder: Any
    head: Any


class TransformerState(NamedTuple):
    """The state of decoding: of the sources, and of the `steps` that were made.

    memory: the keys and values of the encoder's output for every block of the decoder, made once;
    lengths (B,) of the sources or None; past: the keys and values of the steps so far.
    """

    memory: Past
    lengths: Array | None
    past: Past | None
    steps: int


class TransformerSettings(TypedDict, total=False):
    """Settings of Transformer, of which those that its blocks have go on to them."""

    dropout: Annotated[float, 0.1]
    #: "pre" or "post".
    norm: Annotated[str, "post"]
    activation: Annotated[str, "relu"]
    eps: Annotated[float, 1e-5]
    #: "sinusoidal", or "learned" for the steps 0 to `longest` − 1.
    positions: Annotated[str, "sinusoidal"]
    longest: Annotated[int, 512]
    #: One table for sources and targets; the head's weight is that of the targets.
    shared: Annotated[bool, False]
    tied: Annotated[bool, False]
    dtype: Annotated[DTypeLike, np.float32]


class Transformer(Layer):
    """logits = decoder(√d E_t[inputs] + P, encoder(√d E_s[sources] + P)) Wᵀ + b,  d = d_model.

    The decoder's attention to itself is causal, and nothing looks at the padding of a source.

    - `shared`: one table E_s = E_t, called `target.weight`, for one vocabulary.
    - `tied`: W is E_t and there is no b; otherwise they are `head.weight` and `head.bias`. The
      gradient of an array that is used more than once is the sum over its uses.
    - `positions`: "sinusoidal" P, or "learned" rows for positions 0 to `longest` − 1.
    - `dropout` also acts on the sums with P. The rest are settings of TransformerBlock; behind
      blocks with norm="pre" stands a normalisation.

    The tables start from N(0, 1/d), so that what √d makes of them is as large as the sinusoids.
    Source: Vaswani et al., Attention is all you need (2017), section 3; Yamanishi, DNN, CNN, RNN,
    LSTM, Attn, and Transformer (2020), section 7; Anonymous, Transformer Layer: notițe și
    arhitectură (undated).
    """

    generator_names = ("rng",)
    takes_tokens = True
    head_op: ModuleType = dense
    backward_reads_output = False

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        d_model: int = 512,
        heads: int = 8,
        hidden: int = 2048,
        encoder_blocks: int = 6,
        decoder_blocks: int = 6,
        **settings: Unpack[TransformerSettings],
    ) -> None:
        chosen = with_defaults("Transformer", TransformerSettings, settings)
        positions, longest = chosen["positions"], chosen["longest"]
        shared, dtype = chosen["shared"], chosen["dtype"]
        sizes = {
            "source_vocabulary": source_vocabulary,
            "target_vocabulary": target_vocabulary,
            "d_model": d_model,
            "longest": longest,
        }
        for name, value in sizes.items():
            if value < 1:
                raise ArgumentError(f"Transformer: {name} is {value}; allowed: 1 or more")
        check_choice("Transformer", "positions", positions, POSITIONS)
        if shared and source_vocabulary != target_vocabulary:
            raise ArgumentError(
                f"Transformer: source_vocabulary is {source_vocabulary}; allowed with shared=True: "
                f"{target_vocabulary}, the target_vocabulary"
            )

        def table(vocabulary: int) -> Embedding:
            initializer = partial(initializers.normal, std=d_model**-0.5)
            return Embedding(vocabulary, d_model, rng=rng, initializer=initializer, dtype=dtype)

        def make_positions() -> Positions:
            if positions == "learned":
                return LearnedPositions(longest, d_model, rng=rng, dtype=dtype)
            return PositionalEncoding()

        self.vocabularies = {"source": source_vocabulary, "target": target_vocabulary}
        self.features = d_model
        self.dropout = chosen["dropout"]
        self.rng = rng if self.dropout > 0 else None
        tables = {} if shared else {"source": table(source_vocabulary)}
        tables["target"] = table(target_vocabulary)
        self.tables = {"source": tables.get("source", tables["target"]), "target": tables["target"]}
        self.positions = {"source": make_positions(), "target": make_positions()}
        inner = selected(StackSettings, chosen)
        self.encoder = TransformerEncoder(encoder_blocks, d_model, heads, hidden, rng=rng, **inner)
        self.decoder = TransformerDecoder(decoder_blocks, d_model, heads, hidden, rng=rng, **inner)
        self.head = (
            None if chosen["tied"] else Dense(d_model, target_vocabulary, rng=rng, dtype=dtype)
        )
        self.shared = shared
        self.layers: dict[str, Layer] = {
            **tables,
            "source_positions": self.positions["source"],
            "target_positions": self.positions["target"],
            "encoder": self.encoder,
            "decoder": self.decoder,
        }
        if self.head is not None:
            self.layers["head"] = self.head

    @in_own_type
    def forward(  # type: ignore[override]
        self,
        sources: Array,
        source_lengths: Lengths | None,
        inputs: Array,
        target_lengths: Lengths | None = None,
        *,
        training: bool = False,
    ) -> tuple[Array, Cache]:
        """logits (N, T, target_vocabulary) for what follows each of inputs, beside sources.

        sources (N, S) and inputs (N, T) are tokens, <s> first in the inputs; the lengths (N,) say
        how many of them are no padding, None that all are not. What stands in the logits behind
        the end of a target means nothing, and the loss has to ignore it.
        Raises ShapeError and ArgumentError where shapes, tokens or lengths are not so.
        """
        source_lengths = self._check("source", sources, source_lengths)
        target_lengths = self._check("target", inputs, target_lengths)
        if inputs.shape[0] != sources.shape[0]:
            raise ShapeError(
                f"Transformer: inputs have shape {tuple(inputs.shape)}; "
                f"allowed: ({sources.shape[0]}, T), as many rows as sources"
            )
        memory, source, encoder = self._encode(sources, source_lengths, training=training)
        z, target = self._embed("target", inputs, training=training)
        z, decoder = self.decoder.forward(
            z, memory, lengths=target_lengths, memory_lengths=source_lengths, training=training
        )
        logits, head = self._scores(z)
        return logits, Cache(source, encoder, target, decoder, head)

    def backward(
        self,
        dlogits: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[None, Mapping[str, Array]]:
        """None, because tokens have no gradient, and the gradients of the parameters."""
        found: dict[str, Mapping[str, Array]] = {}
        dz: Any
        if self.head is not None:
            dz, found["head"] = self.head.backward(
                dlogits, cache.head, gradients=part(gradients, "head")
            )
        else:
            is_frozen = not self.tables["target"].is_trained
            out = None if gradients is None else gradients.get("target.weight")
            dz, dtable, _ = self.head_op.backward(
                dlogits, cache.head, out=(None, SKIP if is_frozen else out, None)
            )
            found["target"] = {} if is_frozen else {"weight": dtable}
        decoder: Any = self.decoder
        (dz, dmemory), found["decoder"] = decoder.backward(
            dz, cache.decoder, gradients=part(gradients, "decoder")
        )
        self._backward_embed("target", dz, cache.target, found, gradients)
        dx, found["encoder"] = self.encoder.backward(
            dmemory, cache.encoder, gradients=part(gradients, "encoder")
        )
        self._backward_embed("source", dx, cache.source, found, gradients)
        if gradients is None:
            gradients = merge({name: found[name] for name in self.layers})
        return None, gradients

    def _encode(
        self, sources: Array, lengths: Array | None, *, training: bool
    ) -> tuple[Array, Embedded, Any]:
        """The memory (N, S, d) and the two caches on the way to it."""
        x, source = self._embed("source", sources, training=training)
        memory, encoder = self.encoder.forward(x, lengths=lengths, training=training)
        return memory, source, encoder

    def _embed(
        self, side: str, tokens: Array, *, offset: int = 0, training: bool = False
    ) -> tuple[Array, Embedded]:
        """dropout(√d E[tokens] + P), the first token standing at the position `offset`."""
        x, table = self.tables[side].forward(tokens)
        x, placed = self.positions[side].forward(math.sqrt(self.features) * x, offset=offset)
        x, dropped = dropout.forward(x, self.dropout, self.rng, training=training)
        return x, Embedded(table, placed, dropped)

    def _backward_embed(
        self,
        side: str,
        dx: Any,
        cache: Embedded,
        found: dict[str, Mapping[str, Array]],
        gradients: Mapping[str, Array] | None,
    ) -> None:
        """Put the gradients of positions and table into `found`, added to what the table has."""
        dx = dropout.backward(dx, cache.dropout)
        name = f"{side}_positions"
        dx, found[name] = self.positions[side].backward(
            dx, cache.positions, gradients=part(gradients, name)
        )
        dx = math.sqrt(self.features) * dx
        table = "target" if self.shared else side
        if table not in found:
            _, found[table] = self.tables[side].backward(
                dx, cache.tokens, gradients=part(gradients, table)
            )
        elif self.tables[side].is_trained:
            dweight = self.tables[side].add_gradient(dx, cache.tokens, found[table]["weight"])
            found[table] = {"weight": dweight}

    def _scores(self, z: Array) -> tuple[Array, Any]:
        if self.head is None:
            return dense.forward(z, self.tables["target"].weight)
        return self.head.forward(z)

    def attention_maps(self, cache: Cache) -> list[tuple[str, Array]]:
        """Every attention's weights (N, heads, T, S) by name, as in `decoder.0.cross_attention`."""
        return [
            (f"{name}.{inner}", weights)
            for name, stack, kept in (
                ("encoder", self.encoder, cache.encoder),
                ("decoder", self.decoder, cache.decoder),
            )
            for inner, weights in stack.attention_maps(kept)
        ]

    def start(self, sources: Array, source_lengths: Lengths | None = None) -> TransformerState:
        """The encoder's work for sources (B, S), before the first step of decoding."""
        source_lengths = self._check("source", sources, source_lengths)
        memory, _, _ = self._encode(sources, source_lengths, training=False)
        return TransformerState(self.decoder.remember(memory), source_lengths, None, 0)

    def step(self, tokens: Array, state: TransformerState) -> tuple[Array, TransformerState]:
        """logits (B, target_vocabulary) for what follows tokens (B,), the first of them <s>."""
        x, _ = self._embed("target", tokens[:, None], offset=state.steps)
        y, past = self.decoder.decode(x, state.past, state.memory, memory_lengths=state.lengths)
        logits, _ = self._scores(y[:, 0])
        return logits, state._replace(past=past, steps=state.steps + 1)

    def choose(self, state: TransformerState, index: Array) -> TransformerState:
        """The state of these rows of the batch, as for the beams that go on."""
        return state._replace(
            memory=choose(state.memory, index),
            lengths=None if state.lengths is None else state.lengths[index],
            past=None if state.past is None else choose(state.past, index),
        )

    def _check(self, side: str, tokens: Array, lengths: Lengths | None) -> Array | None:
        """The lengths, as they are settled."""
        name = "sources" if side == "source" else "inputs"
        if len(tokens.shape) != 2 or tokens.shape[1] == 0:
            raise ShapeError(
                f"Transformer: {name} have shape {tuple(tokens.shape)}; "
                "allowed: (N, steps) with at least one step"
            )
        return settled_lengths(f"Transformer, {side}", lengths, *tokens.shape[:2])

    def output_shape(  # type: ignore[override]
        self, input_shape: PairShape
    ) -> Shape:
        """The shape of the logits of one example of shape ((S,), (T,))."""
        if len(input_shape) != 2 or any(not isinstance(shape, tuple) for shape in input_shape):
            raise ShapeError(
                f"Transformer: an example has shape {input_shape}; allowed: ((S,), (T,))"
            )
        return (*input_shape[1], self.vocabularies["target"])

    def flops(  # type: ignore[override]
        self, input_shape: PairShape
    ) -> int:
        return sum(row.flops for row in self.rows(input_shape))

    def rows(  # type: ignore[override]
        self, input_shape: PairShape, name: str = ""
    ) -> list[Row]:
        """For an example of shape ((S,), (T,)); a shared table counts once."""
        prefix = f"{name}." if name else ""
        logits_shape = self.output_shape(input_shape)
        (source_steps,), (target_steps,) = input_shape
        source, target = (source_steps, self.features), (target_steps, self.features)
        shapes = {
            "source": (source_steps,),
            "target": (target_steps,),
            "source_positions": source,
            "encoder": source,
        }
        rows = []
        for child_name, layer in self.layers.items():
            rows += layer.rows(shapes.get(child_name, target), prefix + child_name)
        if self.head is None:
            flops = 2 * self.features * math.prod(logits_shape)
            rows.append(Row(f"{prefix}head", "Dense", logits_shape, 0, flops))
        crossing = self.decoder.blocks[0].layers["cross_attention"].inner
        assert isinstance(crossing, MultiHeadAttention)
        flops = crossing.flops(target, keys=source_steps)
        return [
            row._replace(flops=flops) if row.name.endswith("cross_attention.inner") else row
            for row in rows
        ]
