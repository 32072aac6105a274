"""The transformer block: attention and a feed-forward network, each with its Add & Norm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.keywords import selected, with_defaults
from handgrad.layers.add_norm import AddNorm
from handgrad.layers.attention import KeysValues, MultiHeadAttention
from handgrad.layers.base import Layer, Row, Shape, merge, part
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.feed_forward import FeedForward
from handgrad.layers.inputs import in_own_type
from handgrad.layers.settings import BlockSettings, HeadSettings


class Cache(NamedTuple):
    """The caches of the two or three parts; None for the part that a block has not."""

    attention: Any
    cross_attention: Any
    feed_forward: Any


class TransformerBlock(Layer):
    """Self-attention, with `cross` then attention to a memory, then the feed-forward network.

    Each part has its skip connection and normalisation (`AddNorm`): norm="pre" normalises what goes
    into a part, norm="post" the sum that comes out. With `causal` no step looks at later ones.
    `dropout` acts on the attention weights, between the two linear maps and on what each part adds,
    as in PyTorch. `kv_heads`, `rotary` and what begins with it, `qk_norm` and `scale` are those of
    MultiHeadAttention, `head_size` all its projection sizes, `attention_bias` its `bias` where that
    is not the block's. With bias=False neither the linear maps nor the norms have one.
    `normalization` is "layer_norm" or "rms_norm".
    Source: Gulino, Neural Network Simplified Mathematics (2025), transformer block; Anonymous,
    Transformer Layer: notițe și arhitectură (undated), sections 3 to 5; Vaswani et al., Attention
    is all you need (2017), for the part with a memory.
    """

    forward_capturable = True

    def __init__(
        self,
        d_model: InputSize,
        heads: int,
        hidden: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        cross: bool = False,
        causal: bool = False,
        **settings: Unpack[BlockSettings],
    ) -> None:
        chosen = with_defaults("TransformerBlock", BlockSettings, settings)
        size, dropout, bias = chosen["head_size"], chosen["dropout"], chosen["bias"]
        eps, dtype, own_bias = chosen["eps"], chosen["dtype"], chosen["attention_bias"]

        def attention(heads_of: HeadSettings) -> MultiHeadAttention:
            return MultiHeadAttention(
                d_model,
                heads,
                rng=rng,
                q_proj_size=size,
                k_proj_size=size,
                v_proj_size=size,
                post_dropout=dropout,
                eps=eps,
                bias=bias if own_bias is None else own_bias,
                **heads_of,
            )

        shared = selected(HeadSettings, chosen)
        inner: dict[str, Layer] = {"attention": attention(shared)}
        if cross:
            inner["cross_attention"] = attention({**shared, "rotary": False})
        inner["feed_forward"] = FeedForward(
            d_model,
            hidden,
            rng=rng,
            activation=chosen["activation"],
            approximate=chosen["approximate"],
            dropout=dropout,
            bias=bias,
            dtype=dtype,
        )
        self.cross = cross
        self.causal = causal
        self.layers: dict[str, AddNorm] = {
            name: AddNorm(
                layer,
                d_model,
                norm=chosen["norm"],
                normalization=chosen["normalization"],
                eps=eps,
                bias=bias,
                dtype=dtype,
            )
            for name, layer in inner.items()
        }

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
        """y (N, T, d_model) for x of the same shape and, with `cross`, a memory (N, S, d_model).

        `mask` and `lengths` say which steps of x may be looked at, `memory_mask` and
        `memory_lengths` which of the memory, as for MultiHeadAttention.
        """
        self._check_memory(memory)
        x, attention = self.layers["attention"].forward(
            x, mask=mask, lengths=lengths, causal=self.causal, training=training
        )
        cross_attention = None
        if memory is not None:
            x, cross_attention = self.layers["cross_attention"].forward(
                x, memory, mask=memory_mask, lengths=memory_lengths, training=training
            )
        y, feed_forward = self.layers["feed_forward"].forward(x, training=training)
        return y, Cache(attention, cross_attention, feed_forward)

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Any, Mapping[str, Array]]:
        found: dict[str, Mapping[str, Array]] = {}
        dmemory = None
        below = input_gradient or self.cross or self.layers["attention"].is_trained
        dx, found["feed_forward"] = self.layers["feed_forward"].backward(
            dy,
            cache.feed_forward,
            gradients=part(gradients, "feed_forward"),
            input_gradient=below,
        )
        if self.cross:
            (dx, dmemory), found["cross_attention"] = self.layers["cross_attention"].backward(
                dx, cache.cross_attention, gradients=part(gradients, "cross_attention")
            )
        if below:
            dx, found["attention"] = self.layers["attention"].backward(
                dx,
                cache.attention,
                gradients=part(gradients, "attention"),
                input_gradient=input_gradient,
            )
        if gradients is None:
            gradients = merge({name: found[name] for name in self.layers if name in found})
        if not input_gradient:
            return None, gradients
        return (dx, dmemory) if self.cross else dx, gradients

    def attention_maps(self, cache: Cache) -> list[tuple[str, Array]]:
        """The weights (N, H, T, S) of each attention by its name, before their dropout."""
        caches = {"attention": cache.attention, "cross_attention": cache.cross_attention}
        return [(name, each.inner.attention.a) for name, each in caches.items() if each is not None]

    def _check_memory(self, memory: Any) -> None:
        if (memory is not None) != self.cross:
            found, allowed = ("given", "none") if memory is not None else ("missing", "a memory")
            raise ArgumentError(
                f"TransformerBlock: memory is {found}; allowed: {allowed}, because cross is "
                f"{self.cross}"
            )

    def remember(self, memory: Array) -> KeysValues:
        """The keys and values of a memory, made once for all steps of `decode`."""
        return _attention_of(self.layers["cross_attention"]).keys_and_values(memory)

    def decode(
        self,
        x: Array,
        past: KeysValues | None = None,
        memory: KeysValues | None = None,
        *,
        memory_lengths: Array | None = None,
    ) -> tuple[Array, KeysValues]:
        """y for the steps x that follow those in `past`, and the past for the steps after them.

        What forward gives at inference for all steps at once, where the block is causal.
        """
        self._check_memory(memory)
        if not self.causal:
            raise ArgumentError("TransformerBlock: decode is called, but causal is False")
        offset = 0 if past is None else past.k.shape[2]
        around = self.layers["attention"]
        attention = _attention_of(around)
        z, _ = around.before(x)
        new = attention.keys_and_values(z, offset=offset)
        past = new if past is None else past.followed_by(new)
        x = around.after(x, attention.attend(z, past, causal=True, offset=offset))
        if memory is not None:
            around = self.layers["cross_attention"]
            z, _ = around.before(x)
            f = _attention_of(around).attend(z, memory, lengths=memory_lengths)
            x = around.after(x, f)
        y, _ = self.layers["feed_forward"].forward(x)
        return y, past

    def output_shape(self, input_shape: Shape) -> Shape:
        return self.layers["attention"].output_shape(input_shape)

    def flops(self, input_shape: Shape) -> int:
        return sum(row.flops for row in self.rows(input_shape))

    def input_flops(self, input_shape: Shape) -> int:
        return self.layers["attention"].input_flops(input_shape)

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        prefix = f"{name}." if name else ""
        return [
            row
            for child_name, layer in self.layers.items()
            for row in layer.rows(input_shape, prefix + child_name)
        ]


def _attention_of(around: AddNorm) -> MultiHeadAttention:
    assert isinstance(around.inner, MultiHeadAttention)
    return around.inner
