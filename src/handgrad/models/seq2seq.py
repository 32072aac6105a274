"""Seq2Seq: from one sequence to another, by recurrent networks with attention between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Unpack

import numpy as np
from array_api_compat import array_namespace

from handgrad.arrays import Array, Lengths
from handgrad.errors import ArgumentError, ShapeError
from handgrad.keywords import selected, with_defaults
from handgrad.layers.base import Layer, Row, Shape, merge, part
from handgrad.layers.construction import FROM_SEED, PairShape
from handgrad.layers.dense import Dense
from handgrad.layers.embedding import Embedding
from handgrad.layers.gru import GRU
from handgrad.layers.inputs import in_own_type
from handgrad.layers.lengths import settled_lengths
from handgrad.layers.lstm import LSTM
from handgrad.layers.rnn import RNN
from handgrad.layers.settings import StackedSettings
from handgrad.models.attention_decoder import AttentionDecoder, Memory
from handgrad.models.decoder_cells import CELLS
from handgrad.models.decoder_scores import SCORES
from handgrad.ops import dropout as dropout_op
from handgrad.ops.arguments import check_choice
from handgrad.ops.scores import within

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["CELLS", "ENCODERS", "SCORES", "Cache", "Seq2Seq", "Seq2SeqState"]

ENCODERS: Final = ("rnn", "gru", "lstm")


class Cache(NamedTuple):
    """The caches of the layers in the order in which forward calls them, None for a missing one.

    within_target (N, T, 1) says where a target has a step, None where all have all.
    """

    source: Any
    source_dropout: Any
    encoder: Any
    first: Any
    target: Any
    target_dropout: Any
    decoder: Any
    head_dropout: Any
    head: Any
    within_target: Array | None

    @property
    def attention(self) -> Float[Array, "N T S"]:
        """The weights of every step over the source; behind the end of a target without meaning."""
        return self.decoder.alpha.transpose(1, 0, 2)


class Seq2SeqState(NamedTuple):
    """The state of decoding, with one row for every sequence that is being written.

    s (B, H); attention (B, S), the weights of the last step, None before the first; memory is that
    of the rows, rows (B,) the sources they belong to.
    """

    s: Array
    memory: Memory
    rows: Array
    attention: Array | None


class Seq2SeqSettings(StackedSettings, total=False):
    """Settings of Seq2Seq; those of `StackedSettings` are its encoder's."""

    num_layers: Annotated[int, 1]
    #: Tell the decoder the token before.
    feed: Annotated[bool, True]


class Seq2Seq(Layer):
    """An encoder in both directions, and a decoder that looks at its states before every step.

        h_i = [h_f,i; h_b,i] from x_i = E_s[source_i],  s_0 = tanh(W_0 h_b,1 + b_0),
        α_j = softmax_i score(s_{j−1}, h_i),  c_j = Σ_i α_ji h_i,
        s_j = cell([c_j; e_j], s_{j−1}) with e_j = E_t[input_j],  logits_j = W_y s_j + b_y

    h_b,1 is the state in which the encoder ends that runs against time: it has seen everything.
    Yamanishi leaves s_0 open, and his decoder does not know what it has written, which a
    translator has to: e_j, the token before. It is left out with feed=False.

    - `encoder` ("rnn", "gru", "lstm") has `hidden` units in each direction and `num_layers` layers;
      `bias`, one of cuDNN's four modes, and `learn_h0` are its own, as of a `Recurrent`.
    - `score`: "additive", v·tanh(W_s s + W_h h_i); "cosine"; "dot", s·h_i/√d.
    - `cell` of the decoder: "sigmoid", "tanh" or "gru", of `decoder_hidden` units: `hidden` unless
      given, and for the scores that compare s with h directly 2 · `hidden`, the only size allowed.
    - `embedding`: features of E_s and E_t. With source_vocabulary=None there is no E_s, and sources
      are vectors of `embedding` features themselves, (N, S, embedding).
    - `dropout`, in training: on x, e and s_j, and between the layers of the encoder.

    Seq2Seq(None, …, encoder="rnn", cell="sigmoid", feed=False) is Yamanishi's model, with
    biases. Tokens and lengths have no gradient; sources that are vectors have.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 6; Bahdanau, Cho,
    Bengio, Neural machine translation by jointly learning to align and translate (2015), for s_0,
    e_j and the additive score.
    """

    generator_names = ("rng",)

    def __init__(
        self,
        source_vocabulary: int | None,
        target_vocabulary: int,
        *,
        embedding: int,
        hidden: int,
        rng: np.random.Generator = FROM_SEED,
        decoder_hidden: int | None = None,
        score: str = "additive",
        encoder: str = "gru",
        cell: str = "gru",
        **settings: Unpack[Seq2SeqSettings],
    ) -> None:
        chosen = with_defaults("Seq2Seq", Seq2SeqSettings, settings)
        feed, dropout, dtype = chosen["feed"], chosen["dropout"], chosen["dtype"]
        check_choice("Seq2Seq", "score", score, SCORES)
        check_choice("Seq2Seq", "encoder", encoder, ENCODERS)
        check_choice("Seq2Seq", "cell", cell, CELLS)
        if decoder_hidden is None:
            decoder_hidden = hidden if score == "additive" else 2 * hidden
        sizes = {
            "source_vocabulary": 1 if source_vocabulary is None else source_vocabulary,
            "target_vocabulary": target_vocabulary,
            "embedding": embedding,
            "hidden": hidden,
            "decoder_hidden": decoder_hidden,
            "num_layers": chosen["num_layers"],
        }
        for name, size in sizes.items():
            if not size >= 1:
                raise ArgumentError(f"Seq2Seq: {name} is {size!r}; allowed: 1 or more")
        if score != "additive" and decoder_hidden != 2 * hidden:
            raise ArgumentError(
                f"Seq2Seq: decoder_hidden is {decoder_hidden}; allowed with score {score!r}: "
                f"{2 * hidden}, twice hidden, because the states of decoder and encoder are "
                "compared directly"
            )
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"Seq2Seq: dropout is {dropout!r}; allowed: 0 to 1")
        self.takes_tokens = source_vocabulary is not None
        self.embedding = embedding
        self.target_vocabulary = target_vocabulary
        self.dropout = dropout
        self.rng = rng if dropout > 0 else None
        self.source = self.target = None
        if source_vocabulary is not None:
            self.source = Embedding(source_vocabulary, embedding, rng=rng, dtype=dtype)
        kinds: dict[str, type[RNN | GRU | LSTM]] = {"rnn": RNN, "gru": GRU, "lstm": LSTM}
        self.encoder = kinds[encoder](
            embedding,
            hidden,
            chosen["num_layers"],
            rng=rng,
            bidirectional=True,
            **selected(StackedSettings, chosen),
        )
        self.first = Dense(hidden, decoder_hidden, rng=rng, activation="tanh", dtype=dtype)
        if feed:
            self.target = Embedding(target_vocabulary, embedding, rng=rng, dtype=dtype)
        self.decoder = AttentionDecoder(
            embedding if feed else 0,
            2 * hidden,
            decoder_hidden,
            rng=rng,
            score=score,
            cell=cell,
            dtype=dtype,
        )
        self.head = Dense(decoder_hidden, target_vocabulary, rng=rng, dtype=dtype)
        children = {
            "source": self.source,
            "encoder": self.encoder,
            "first": self.first,
            "target": self.target,
            "decoder": self.decoder,
            "head": self.head,
        }
        self.layers = {name: layer for name, layer in children.items() if layer is not None}

    @in_own_type
    def forward(  # type: ignore[override]
        self,
        sources: Int[Array, "N S"] | Float[Array, "N S E"],
        source_lengths: Int[Array, "N"] | list[int] | None,
        inputs: Int[Array, "N T"],
        target_lengths: Int[Array, "N"] | list[int] | None = None,
        *,
        training: bool = False,
    ) -> tuple[Float[Array, "N T V"], Cache]:
        """logits_j, the scores of what follows each of the inputs, <s> first.

        Of sources and inputs the first `source_lengths` and `target_lengths` steps count, None
        meaning all: what stands behind has no influence, and behind the end of a target logits are
        0. A source of length 0 gives contexts of 0.
        Raises ShapeError for shapes that do not fit, ArgumentError for tokens outside of a
        vocabulary and for lengths outside of 0 to S or T.
        """
        source_lengths, target_lengths = self._check(
            sources, source_lengths, inputs, target_lengths
        )
        x, source, source_dropout = self._embed(self.source, sources, training=training)
        (h, state), encoder = self.encoder.forward(x, lengths=source_lengths, training=training)
        s0, first = self.first.forward(self._last_backward(state))
        xp = array_namespace(h)
        if self.target is None:
            e = xp.empty((*inputs.shape, 0), dtype=h.dtype)
            target = target_dropout = None
        else:
            e, target, target_dropout = self._embed(self.target, inputs, training=training)
        s, decoder = self.decoder.forward(e, h, s0, source_lengths)
        s, head_dropout = self._drop(s, training=training)
        logits, head = self.head.forward(s)
        within_target = None
        if target_lengths is not None:
            within_target = within(target_lengths, inputs.shape[1], axes=2)[:, :, None]
            logits = xp.where(within_target, logits, xp.zeros_like(logits))
        cache = Cache(
            source,
            source_dropout,
            encoder,
            first,
            target,
            target_dropout,
            decoder,
            head_dropout,
            head,
            within_target,
        )
        return logits, cache

    def backward(
        self,
        dlogits: Float[Array, "N T V"],
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        """dsources where they are vectors, otherwise None, and the gradients of the parameters.

        The encoder's states get gradients on two ways: as memory, and as what s_0 was made of.
        """
        found: dict[str, Mapping[str, Array]] = {}
        ds: Any
        dx: Any
        if cache.within_target is not None:
            xp = array_namespace(dlogits)
            dlogits = xp.where(cache.within_target, dlogits, xp.zeros_like(dlogits))
        ds, found["head"] = self.head.backward(
            dlogits, cache.head, gradients=part(gradients, "head")
        )
        ds = dropout_op.backward(ds, cache.head_dropout)
        (de, dh, ds0), found["decoder"] = self.decoder.backward(
            ds, cache.decoder, gradients=part(gradients, "decoder")
        )
        if self.target is not None:
            de = dropout_op.backward(de, cache.target_dropout)
            _, found["target"] = self.target.backward(
                de, cache.target, gradients=part(gradients, "target")
            )
        dlast, found["first"] = self.first.backward(
            ds0, cache.first, gradients=part(gradients, "first")
        )
        wants_dx = self.source is not None or input_gradient
        (dx, _), found["encoder"] = self.encoder.backward(
            (dh, self._dstate(dlast)),
            cache.encoder,
            gradients=part(gradients, "encoder"),
            input_gradient=wants_dx,
        )
        if wants_dx:
            dx = dropout_op.backward(dx, cache.source_dropout)
        if self.source is not None:
            dx, found["source"] = self.source.backward(
                dx, cache.source, gradients=part(gradients, "source")
            )
        if gradients is None:
            gradients = merge({name: found[name] for name in self.layers})
        return dx, gradients

    def _embed(
        self, table: Embedding | None, tokens: Array, *, training: bool
    ) -> tuple[Array, Any, Any]:
        """Features (N, T, E) after dropout, and the caches of table and dropout."""
        x, cache = tokens, None
        if table is not None:
            x, cache = table.forward(tokens)
        x, dropped = self._drop(x, training=training)
        return x, cache, dropped

    def _drop(self, x: Array, *, training: bool) -> tuple[Array, Any]:
        return dropout_op.forward(x, self.dropout, self.rng, training=training)

    def _last_backward(self, state: Any) -> Float[Array, "N H"]:
        """h_b,1 of the last layer: the states stand layer by layer, forward before reverse."""
        h = state[0] if isinstance(state, tuple) else state
        return h[-1]

    def _dstate(self, dlast: Any) -> Any:
        """The gradient of the encoder's final states where only h_b,1 has one."""
        xp = array_namespace(dlast)
        below = xp.zeros((2 * self.encoder.num_layers - 1, *dlast.shape), dtype=dlast.dtype)
        dstate = xp.concat((below, dlast[None]), axis=0)
        return (dstate, None) if isinstance(self.encoder, LSTM) else dstate

    def attention_maps(self, cache: Cache) -> list[tuple[str, Array]]:
        """The attention's weights by name, (N, 1, T, S) as of one head."""
        return [("decoder", cache.attention[:, None])]

    def start(
        self, sources: Array, source_lengths: Int[Array, "B"] | list[int] | None = None
    ) -> Seq2SeqState:
        """The encoder's work for sources (B, S), before the first step of decoding."""
        source_lengths, _ = self._check(sources, source_lengths, None, None)
        x, _, _ = self._embed(self.source, sources, training=False)
        (h, state), _ = self.encoder.forward(x, lengths=source_lengths)
        s0, _ = self.first.forward(self._last_backward(state))
        memory = self.decoder.remember(h, source_lengths)
        return Seq2SeqState(s0, memory, np.arange(len(s0)), None)

    def step(
        self, tokens: Int[Array, "B"], state: Seq2SeqState
    ) -> tuple[Float[Array, "B V"], Seq2SeqState]:
        """logits for what follows the tokens, the first of them <s>, and the state after them."""
        if self.target is None:
            e = np.empty((len(tokens), 0), dtype=state.s.dtype)
        else:
            e, _ = self.target.forward(tokens)
        s, alpha = self.decoder.step(e, state.s, state.memory)
        logits, _ = self.head.forward(s)
        return logits, state._replace(s=s, attention=alpha)

    def choose(self, state: Seq2SeqState, index: Int[Array, "K"]) -> Seq2SeqState:
        """The state of these rows, as for the beams that go on.

        Beams of one source share its memory, so it is copied only where the sources change.
        """
        rows = state.rows[index]
        memory = state.memory
        if not np.array_equal(rows, state.rows):
            kept = None if memory.lengths is None else memory.lengths[index]
            memory = Memory(memory.keys[index], memory.values[index], kept)
        alpha = None if state.attention is None else state.attention[index]
        return Seq2SeqState(state.s[index], memory, rows, alpha)

    def _check(
        self,
        sources: Array,
        source_lengths: Lengths | None,
        inputs: Array | None,
        target_lengths: Lengths | None,
    ) -> tuple[Array | None, Array | None]:
        """The lengths of both sides, as they are settled."""
        axes = 3 if self.source is None else 2
        allowed = f"(N, S, {self.embedding})" if self.source is None else "(N, S)"
        shape = tuple(sources.shape)
        if len(shape) != axes or shape[1] == 0 or (axes == 3 and shape[2] != self.embedding):
            raise ShapeError(
                f"Seq2Seq: sources have shape {shape}; allowed: {allowed} with S at least 1"
            )
        if inputs is not None and (len(inputs.shape) != 2 or inputs.shape[0] != shape[0]):
            raise ShapeError(
                f"Seq2Seq: inputs have shape {tuple(inputs.shape)}; allowed: ({shape[0]}, T), "
                "as many rows as sources"
            )
        steps = 0 if inputs is None else inputs.shape[1]
        return (
            settled_lengths("Seq2Seq, source", source_lengths, *shape[:2]),
            settled_lengths("Seq2Seq, target", target_lengths, shape[0], steps),
        )

    def output_shape(  # type: ignore[override]
        self, input_shape: PairShape
    ) -> Shape:
        """The shape of the logits of one example, ((S,), (T,)); ((S, E), (T,)) for vectors."""
        axes = 2 if self.source is None else 1
        fits = (
            len(input_shape) == 2
            and all(isinstance(shape, tuple) for shape in input_shape)
            and (len(input_shape[0]), len(input_shape[1])) == (axes, 1)
        )
        if not fits:
            source = "(S,)" if axes == 1 else f"(S, {self.embedding})"
            raise ShapeError(
                f"Seq2Seq: an example has shape {input_shape}; allowed: ({source}, (T,))"
            )
        return (*input_shape[1], self.target_vocabulary)

    def flops(  # type: ignore[override]
        self, input_shape: PairShape
    ) -> int:
        return sum(row.flops for row in self.rows(input_shape))

    def input_flops(  # type: ignore[override]
        self, input_shape: PairShape
    ) -> int:
        return 0 if self.source is not None else self.encoder.input_flops(input_shape[0])

    def rows(  # type: ignore[override]
        self, input_shape: PairShape, name: str = ""
    ) -> list[Row]:
        """The rows of the layers for an example of the shapes that `output_shape` takes."""
        prefix = f"{name}." if name else ""
        steps, _ = self.output_shape(input_shape)
        keys = input_shape[0][0]
        memory = (keys, 2 * self.encoder.hidden_size)
        s = (steps, self.head.in_features)
        shapes: dict[str, Any] = {
            "source": (keys,),
            "encoder": (keys, self.embedding),
            "first": (self.first.in_features,),
            "target": (steps,),
            "decoder": ((steps, 0 if self.target is None else self.embedding), memory),
            "head": s,
        }
        return [
            row
            for child_name, layer in self.layers.items()
            for row in layer.rows(shapes[child_name], prefix + child_name)
        ]
