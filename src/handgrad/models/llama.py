"""Llama: a decoder-only transformer with RMSNorm, SwiGLU, rotary positions and grouped heads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Unpack

import numpy as np

from handgrad.errors import ArgumentError
from handgrad.keywords import with_defaults
from handgrad.layers.construction import FROM_SEED
from handgrad.layers.dense import Dense
from handgrad.layers.embedding import Embedding
from handgrad.layers.transformer import TransformerEncoder
from handgrad.models.decoder_only import DecoderOnly, DecoderSettings
from handgrad.models.rotary_scaling import scaled

#: Standard deviation of the first weights.
_STD: Final = 0.02


class LlamaSettings(DecoderSettings, total=False):
    """Settings of Llama that go on to its blocks."""

    #: Size of one head; None for width/heads.
    head_size: Annotated[int | None, None]
    rotary_base: Annotated[float, 10000.0]
    qk_norm: Annotated[bool, False]
    #: True, False, or the names of the projections that have one.
    attention_bias: Annotated[bool | tuple[str, ...], False]
    bias: Annotated[bool, False]
    eps: Annotated[float, 1e-6]


class Llama(DecoderOnly):
    """logits = RMS(blocks(E[tokens])) Wᵀ with causal pre-norm blocks, RMSNorm and SwiGLU.

    - `context`: the most tokens that are looked at; `width`, `heads`, `hidden` and `blocks` are the
      sizes of the transformer. The `kv_heads` (as many as `heads` unless given) are shared by
      groups of heads; a head has `head_size` features, width/heads unless given.
    - Queries and keys are turned by angles of `rotary_base`, stretched as `rotary_scaling` says in
      the words of `handgrad.models.rotary_scaling`.
    - `tied`: W is E, one array `tokens.weight`, whose gradient is the sum of both uses; else W is
      `head.weight`.
    - `attention_bias` is True, False or the names of the projections with a bias, which are
      ("q_proj", "k_proj", "v_proj") in Qwen2; `bias` is that of the feed-forward networks.
      `qk_norm` normalises queries and keys by head, as Qwen3 does.
    - `recompute`: backward makes the caches of the blocks again, which saves their memory.

    `feed_forward.inner.linear1` has the rows of gate and up projection, in this order. Weights
    start as N(0, 0.02²), those that end in a skip connection (`o_proj`, `linear2`) 1/√(2 · blocks)
    of that, biases 0.
    Source: Touvron et al., LLaMA: open and efficient foundation language models (2023), section
    2.2; Ainslie et al., GQA: training generalized multi-query transformer models from multi-head
    checkpoints (2023), for grouped heads.
    """

    backward_reads_output = False

    def __init__(
        self,
        vocabulary: int,
        *,
        context: int,
        width: int,
        heads: int,
        blocks: int,
        hidden: int,
        rng: np.random.Generator = FROM_SEED,
        rotary_scaling: Mapping[str, Any] | None = None,
        tied: bool = False,
        **settings: Unpack[LlamaSettings],
    ) -> None:
        chosen = with_defaults("Llama", LlamaSettings, settings)
        head_size, dtype = chosen["head_size"], chosen["dtype"]
        self._check_sizes(vocabulary=vocabulary, context=context, width=width, heads=heads)
        size = width // heads if head_size is None else head_size
        if size < 2 or size % 2 != 0:
            raise ArgumentError(
                f"Llama: head_size is {size}; allowed: an even number, because pairs are turned"
            )
        frequencies, scale = None, None
        if rotary_scaling is not None:
            frequencies, factor = scaled(size, chosen["rotary_base"], rotary_scaling)
            scale = factor**2 / math.sqrt(size)
        tokens = Embedding(vocabulary, width, rng=rng, dtype=dtype)
        stack = TransformerEncoder(
            blocks,
            width,
            heads,
            hidden,
            rng=rng,
            causal=True,
            activation="swiglu",
            normalization="rms_norm",
            scale=scale,
            rotary=True,
            rotary_frequencies=frequencies,
            **chosen,
        )
        head = None if tied else Dense(width, vocabulary, rng=rng, bias=False, dtype=dtype)
        self._assemble(
            tokens, None, stack, head, context=context, dropout=chosen["dropout"], rng=rng, std=_STD
        )
