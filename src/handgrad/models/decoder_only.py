"""Decoder-only transformers: models that say what comes next after every token."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Annotated, Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers.base import Row, Shape, merge, part, walk
from handgrad.layers.dense import Dense
from handgrad.layers.embedding import Embedding
from handgrad.layers.inputs import in_own_type
from handgrad.layers.positions import LearnedPositions, PositionalEncoding
from handgrad.layers.transformer import Past, TransformerEncoder, choose
from handgrad.models.decoding import sample
from handgrad.models.pretrained import Pretrained
from handgrad.ops import dense, dropout


class Cache(NamedTuple):
    """The caches of the steps, in the order of forward; `attention_maps` reads the weights."""

    tokens: Any
    positions: Any
    dropout: Any
    blocks: Any
    head: Any


class DecoderState(NamedTuple):
    """The tokens (B, T) so far, at most `context` of them, and their keys and values."""

    tokens: Array
    past: Past


class DecoderSettings(TypedDict, total=False):
    """Settings of every decoder-only model that go on to its blocks."""

    dropout: Annotated[float, 0.0]
    #: Heads of keys and values; None for as many as there are heads.
    kv_heads: Annotated[int | None, None]
    #: Make the caches of the blocks again in backward, which saves their memory.
    recompute: Annotated[bool, False]
    dtype: Annotated[DTypeLike, np.float32]


class DecoderOnly(Pretrained):
    """logits = blocks(dropout(E[tokens] + P)) Wᵀ, where a constructor says of which layers.

    A derived class calls `_assemble`, and declares `backward_reads_output = False`. W is E, one
    array `tokens.weight` whose gradient is the sum of both uses, or `head.weight`.
    """

    generator_names = ("rng",)
    takes_tokens = True
    head_op: ModuleType = dense

    def _assemble(
        self,
        tokens: Embedding,
        positions: LearnedPositions | PositionalEncoding | None,
        blocks: TransformerEncoder,
        head: Dense | None,
        *,
        context: int,
        dropout: float,
        rng: np.random.Generator,
        std: float,
    ) -> None:
        """Take the layers, and draw their first weights.

        These are N(0, std²), those that end in a skip connection 1/√(2 · blocks) of that.
        """
        self.vocabulary = len(tokens.weight)
        self.context = context
        self.dropout = dropout
        self.rng = rng if dropout > 0 else None
        self.tokens, self.positions, self.blocks, self.head = tokens, positions, blocks, head
        children = {"tokens": tokens, "positions": positions, "blocks": blocks, "head": head}
        self.layers = {name: layer for name, layer in children.items() if layer is not None}
        depth = 2 * len(blocks.blocks)
        for name, layer in walk(self):
            if isinstance(layer, Dense | Embedding | LearnedPositions):
                ends_in_skip = name.endswith(("o_proj", "linear2"))
                own = std / math.sqrt(depth) if ends_in_skip else std
                layer.initializer = partial(initializers.normal, std=own)
                w = layer.weight
                w[...] = layer.initializer(w.shape, rng, dtype=w.dtype)

    def _check_sizes(self, **sizes: int) -> None:
        for name, value in sizes.items():
            if value < 1:
                raise ArgumentError(f"{type(self).__name__}: {name} is {value}; allowed: 1 or more")

    @in_own_type
    def forward(self, tokens: Array, *, training: bool = False) -> tuple[Array, Cache]:
        """logits (N, T, vocabulary) for tokens (N, T): what comes after each of them.

        Raises ShapeError for more tokens than `context`, ArgumentError for one outside the
        vocabulary.
        """
        self._check(tuple(tokens.shape), 2, "(N, T)")
        x, embedded = self.tokens.forward(tokens)
        placed = None
        if self.positions is not None:
            x, placed = self.positions.forward(x)
        x, dropped = dropout.forward(x, self.dropout, self.rng, training=training)
        x, blocks = self.blocks.forward(x, training=training)
        logits, head = self._scores(x)
        return logits, Cache(embedded, placed, dropped, blocks, head)

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
        user = "tokens" if self.head is None else "head"
        is_frozen = not self.layers[user].is_trained
        out = None if gradients is None else gradients.get(f"{user}.weight")
        dx, dweight, _ = self.head_op.backward(
            dlogits, cache.head, out=(None, SKIP if is_frozen else out, None)
        )
        found[user] = {} if is_frozen else {"weight": dweight}
        embeds = [layer for layer in (self.positions, self.tokens) if layer is not None]
        below = any(layer.is_trained for layer in embeds)
        dx, found["blocks"] = self.blocks.backward(
            dx, cache.blocks, gradients=part(gradients, "blocks"), input_gradient=below
        )
        if below:
            self._backward_embed(dx, cache, found, gradients)
        if gradients is None:
            gradients = merge({name: found[name] for name in self.layers if name in found})
        return None, gradients

    def _backward_embed(
        self,
        dx: Array,
        cache: Cache,
        found: dict[str, Mapping[str, Array]],
        gradients: Mapping[str, Array] | None,
    ) -> None:
        """Put the gradients of positions and tokens into `found`, added to what the head has."""
        dx = dropout.backward(dx, cache.dropout)
        if self.positions is not None:
            dx, found["positions"] = self.positions.backward(
                dx, cache.positions, gradients=part(gradients, "positions")
            )
        if self.head is not None:
            _, found["tokens"] = self.tokens.backward(
                dx, cache.tokens, gradients=part(gradients, "tokens")
            )
        elif self.tokens.is_trained:
            dweight = self.tokens.add_gradient(dx, cache.tokens, found["tokens"]["weight"])
            found["tokens"] = {"weight": dweight}

    def attention_maps(self, cache: Cache) -> list[tuple[str, Array]]:
        """Each block's attention weights (N, heads, T, T) by name, such as `blocks.0.attention`."""
        maps = self.blocks.attention_maps(cache.blocks)
        return [(f"blocks.{name}", weights) for name, weights in maps]

    def start(self, tokens: Array) -> tuple[Array, DecoderState]:
        """logits (B, vocabulary) for what follows tokens (B, T), and the state for `step`.

        Of more than `context` tokens the last `context` are looked at.
        """
        tokens = np.asarray(tokens)[..., -self.context :]
        self._check(tokens.shape, 2, "(B, T)")
        return self._decode(tokens, tokens, None)

    def step(self, tokens: Array, state: DecoderState) -> tuple[Array, DecoderState]:
        """logits (B, vocabulary) for what follows the state's tokens and then tokens (B,).

        Where the context is full, positions move, so its last `context` tokens are computed anew; a
        step then costs as much as `start`.
        """
        so_far = np.concatenate([state.tokens, np.asarray(tokens)[:, None]], axis=1)
        if so_far.shape[1] > self.context:
            return self.start(so_far)
        return self._decode(so_far[:, -1:], so_far, state.past)

    def choose(self, state: DecoderState, index: Array) -> DecoderState:
        """The state of these rows of the batch."""
        return DecoderState(state.tokens[index], choose(state.past, index))

    def generate(
        self,
        tokens: Array,
        *,
        length: int,
        rng: np.random.Generator,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> Array:
        """The tokens (B, T) and `length` more, each drawn from what the model says of it.

        Goes on beyond the context, as `step` does; the settings are those of
        `handgrad.models.decoding.sample`.
        """
        return sample(
            self,
            tokens,
            length=length,
            rng=rng,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
        )

    def _decode(self, new: Array, so_far: Array, past: Past | None) -> tuple[Array, DecoderState]:
        """logits after the last of the new tokens, which are the end of all so far."""
        x, _ = self.tokens.forward(new)
        if self.positions is not None:
            x, _ = self.positions.forward(x, offset=so_far.shape[1] - new.shape[1])
        y, past = self.blocks.decode(x, past)
        logits, _ = self._scores(y[:, -1])
        return logits, DecoderState(so_far, past)

    def _scores(self, x: Array) -> tuple[Array, Any]:
        return dense.forward(x, (self.tokens if self.head is None else self.head).weight)

    def _check(self, shape: Shape, axes: int, allowed: str) -> None:
        if len(shape) != axes or not 1 <= shape[-1] <= self.context:
            raise ShapeError(
                f"{type(self).__name__}: tokens have shape {shape}; allowed: {allowed} with T "
                f"from 1 to {self.context}, the context"
            )

    def output_shape(self, input_shape: Shape) -> Shape:
        self._check(input_shape, 1, "an example (T,)")
        return (*input_shape, self.vocabulary)

    def flops(self, input_shape: Shape) -> int:
        return sum(row.flops for row in self.rows(input_shape))

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        """A tied head has no parameters of its own."""
        prefix = f"{name}." if name else ""
        shape, logits_shape = input_shape, self.output_shape(input_shape)
        rows = []
        for child_name, layer in self.layers.items():
            rows += layer.rows(shape, prefix + child_name)
            shape = layer.output_shape(shape)
        if self.head is None:
            flops = 2 * self.tokens.features * math.prod(logits_shape)
            rows.append(Row(f"{prefix}head", "Dense", logits_shape, 0, flops))
        return rows
