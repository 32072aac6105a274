"""Stacks of transformer blocks: an encoder, and a decoder beside a memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.kernels.sums import add
from handgrad.keywords import selected, with_defaults
from handgrad.layers import recompute as recomputing
from handgrad.layers.add_norm import normalization_layer
from handgrad.layers.attention import KeysValues
from handgrad.layers.base import Layer, Row, Shape, first_trained, merge, part
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.inputs import in_own_type
from handgrad.layers.settings import BlockSettings, StackSettings
from handgrad.layers.transformer_block import TransformerBlock

Past = tuple[KeysValues, ...]


def choose(past: Past, index: Array) -> Past:
    """The keys and values of these rows of the batch, for decoding that drops or repeats rows."""
    return tuple(KeysValues(k[index], v[index]) for k, v in past)


class Cache(NamedTuple):
    """The caches of the blocks and of the norm at the end, None where there is none."""

    blocks: tuple[Any, ...]
    norm: Any


class _Stack(Layer):
    """Shared parts of encoder and decoder: blocks named 0, 1, … and, with `final_norm`, `norm`."""

    def __init__(
        self,
        blocks: int,
        d_model: InputSize,
        heads: int,
        hidden: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        cross: bool = False,
        causal: bool = False,
        **settings: Unpack[StackSettings],
    ) -> None:
        name = type(self).__name__
        if blocks < 1:
            raise ArgumentError(f"{name}: blocks is {blocks}; allowed: 1 or more")
        chosen = with_defaults(name, StackSettings, settings)
        inner = selected(BlockSettings, chosen)
        self.blocks = tuple(
            TransformerBlock(d_model, heads, hidden, rng=rng, cross=cross, causal=causal, **inner)
            for _ in range(blocks)
        )
        self.recompute = chosen["recompute"]
        self.norm = None
        self.layers: dict[str, Layer] = {str(i): block for i, block in enumerate(self.blocks)}
        final_norm = chosen["final_norm"]
        if chosen["norm"] == "pre" if final_norm is None else final_norm:
            self.norm = self.layers["norm"] = normalization_layer(
                name,
                chosen["normalization"],
                d_model,
                eps=chosen["eps"],
                bias=chosen["bias"],
                dtype=chosen["dtype"],
            )

    def _through(self, x: Array, *memory: Array, **settings: Any) -> tuple[Array, Cache]:
        caches: list[Any] = []
        for block in self.blocks:
            cache: Any
            if self.recompute:
                x, cache = recomputing.forward(block, x, *memory, **settings)
            else:
                x, cache = block.forward(x, *memory, **settings)
            caches.append(cache)
        norm = None
        if self.norm is not None:
            x, norm = self.norm.forward(x)
        return x, Cache(tuple(caches), norm)

    def _cache_of(self, i: int, cache: Cache) -> Any:
        """The cache of a block, made again where it was not kept."""
        kept = cache.blocks[i]
        return recomputing.cache_of(self.blocks[i], kept) if self.recompute else kept

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Any, Mapping[str, Array]]:
        found: dict[str, Mapping[str, Array]] = {}
        dx, dmemory = dy, None
        if self.norm is not None:
            dx, found["norm"] = self.norm.backward(
                dx, cache.norm, gradients=part(gradients, "norm")
            )
        last_needed = 0 if input_gradient else first_trained(self.blocks)
        for i in range(len(self.blocks) - 1, last_needed - 1, -1):
            dx, found[str(i)] = self.blocks[i].backward(
                dx,
                self._cache_of(i, cache),
                gradients=part(gradients, str(i)),
                input_gradient=input_gradient or i > last_needed,
            )
            if isinstance(dx, tuple):
                dx, dmemory_here = dx
                dmemory = dmemory_here if dmemory is None else add(dmemory, dmemory_here)
        if gradients is None:
            gradients = merge({name: found[name] for name in self.layers if name in found})
        if not input_gradient:
            return None, gradients
        return dx if dmemory is None else (dx, dmemory), gradients

    def attention_maps(self, cache: Cache) -> list[tuple[str, Array]]:
        """The weights (N, H, T, S) of every attention, named as in `0.cross_attention`."""
        return [
            (f"{i}.{name}", weights)
            for i, block in enumerate(self.blocks)
            for name, weights in block.attention_maps(self._cache_of(i, cache))
        ]

    def decode(
        self,
        x: Array,
        past: Past | None = None,
        memory: Past | None = None,
        *,
        memory_lengths: Array | None = None,
    ) -> tuple[Array, Past]:
        """y for the steps x that follow those in `past`, and the past for the steps after them.

        What forward gives at inference for all steps at once, where the stack is causal; `memory`
        is what a decoder's `remember` made.
        """
        found = []
        for i, block in enumerate(self.blocks):
            x, here = block.decode(
                x,
                None if past is None else past[i],
                None if memory is None else memory[i],
                memory_lengths=memory_lengths,
            )
            found.append(here)
        if self.norm is not None:
            x, _ = self.norm.forward(x)
        return x, tuple(found)

    def output_shape(self, input_shape: Shape) -> Shape:
        return self.blocks[0].output_shape(input_shape)

    def flops(self, input_shape: Shape) -> int:
        return sum(row.flops for row in self.rows(input_shape))

    def input_flops(self, input_shape: Shape) -> int:
        return self.blocks[0].input_flops(input_shape)

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        prefix = f"{name}." if name else ""
        return [
            row
            for child_name, layer in self.layers.items()
            for row in layer.rows(input_shape, prefix + child_name)
        ]


class TransformerEncoder(_Stack):
    """Blocks of self-attention and feed-forward network, one after another.

    Settings are those of TransformerBlock; with `causal` the stack is that of a decoder-only model.
    With `recompute` a block keeps its inputs alone, as `Recompute` does.
    Behind the last block stands a normalisation (`final_norm`) where norm="pre", because what comes
    out of such a block is a sum that was never normalised.
    Source: Vaswani et al., Attention is all you need (2017), section 3.1; Yamanishi, DNN, CNN, RNN,
    LSTM, Attn, and Transformer (2020), section 7.
    """

    forward_capturable = True

    @in_own_type
    def forward(
        self,
        x: Array,
        *,
        mask: Array | None = None,
        lengths: Array | None = None,
        training: bool = False,
    ) -> tuple[Array, Cache]:
        """y (N, T, d_model) for x of the same shape; mask and lengths as in TransformerBlock."""
        return self._through(x, mask=mask, lengths=lengths, training=training)


class TransformerDecoder(_Stack):
    """Blocks of causal self-attention, attention to a memory, and feed-forward network.

    Every block looks at the same memory, so its gradient is the sum over the blocks:

        y, cache = decoder.forward(x, memory)
        (dx, dmemory), gradients = decoder.backward(dy, cache)

    Settings are those of TransformerBlock, `final_norm` that of TransformerEncoder.
    Source: Vaswani et al., Attention is all you need (2017), section 3.1; Yamanishi, DNN, CNN, RNN,
    LSTM, Attn, and Transformer (2020), section 7.
    """

    def __init__(
        self,
        blocks: int,
        d_model: InputSize,
        heads: int,
        hidden: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        cross: bool = True,
        causal: bool = True,
        **settings: Unpack[StackSettings],
    ) -> None:
        super().__init__(
            blocks, d_model, heads, hidden, rng=rng, cross=cross, causal=causal, **settings
        )

    @in_own_type
    def forward(
        self,
        x: Array,
        memory: Array | None = None,
        *,
        mask: Array | None = None,
        lengths: Array | None = None,
        memory_mask: Array | None = None,
        memory_lengths: Array | None = None,
        training: bool = False,
    ) -> tuple[Array, Cache]:
        """y (N, T, d_model) for x of the same shape and a memory (N, S, d_model).

        Without a memory it raises ArgumentError. Masks and lengths are those of TransformerBlock.
        """
        return self._through(
            x,
            memory,
            mask=mask,
            lengths=lengths,
            memory_mask=memory_mask,
            memory_lengths=memory_lengths,
            training=training,
        )

    def remember(self, memory: Array) -> Past:
        """The keys and values of a memory for every block, made once for all steps of `decode`."""
        return tuple(block.remember(memory) for block in self.blocks)
