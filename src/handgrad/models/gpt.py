"""GPT: a decoder-only transformer that says what comes next."""

from __future__ import annotations

from typing import Annotated, Final, Unpack

import numpy as np

from handgrad.keywords import with_defaults
from handgrad.layers.construction import FROM_SEED
from handgrad.layers.dense import Dense
from handgrad.layers.embedding import Embedding
from handgrad.layers.positions import LearnedPositions, PositionalEncoding
from handgrad.layers.transformer import TransformerEncoder
from handgrad.models.decoder_only import DecoderOnly, DecoderSettings
from handgrad.ops.arguments import check_choice

POSITIONS: Final = ("learned", "rotary", "sinusoidal")

#: Standard deviation of GPT-2's first weights.
STD: Final = 0.02


class GPTSettings(DecoderSettings, total=False):
    """Settings of GPT that go on to its blocks."""

    bias: Annotated[bool, True]
    eps: Annotated[float, 1e-5]
    #: The form of GELU, "none" or "tanh".
    approximate: Annotated[str, "none"]


class GPT(DecoderOnly):
    """logits = LN(blocks(dropout(E[tokens] + P))) Wᵀ with causal pre-norm blocks.

    - `context`: the most tokens that are looked at; `width`, `heads`, `hidden` (4 · width unless
      given) and `blocks` are the sizes of the transformer.
    - `positions`: "learned" rows P, "sinusoidal" ones, or "rotary" (in the attention instead of P).
    - `tied`: W is E, one array `tokens.weight`, whose gradient is the sum of both uses; else W is
      `head.weight`. There is no bias in the head.
    - `approximate="tanh"` takes GPT-2's form of GELU. With bias=False no linear map and no norm
      has a bias. `dropout` also acts on E[tokens] + P; all else is as in TransformerBlock.
    - `recompute`: backward makes the caches of the blocks again, which saves their memory.

    Weights start as GPT-2's: N(0, 0.02²), those that end in a skip connection (`o_proj`, `linear2`)
    1/√(2 · blocks) of that, biases 0.
    Source: Radford et al., Language models are unsupervised multitask learners (2019), section 2.3;
    Gulino, Neural Network Simplified Mathematics (2025), transformer block.
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
        rng: np.random.Generator = FROM_SEED,
        hidden: int | None = None,
        positions: str = "learned",
        tied: bool = True,
        **settings: Unpack[GPTSettings],
    ) -> None:
        chosen = with_defaults("GPT", GPTSettings, settings)
        dtype = chosen["dtype"]
        self._check_sizes(vocabulary=vocabulary, context=context, width=width)
        check_choice("GPT", "positions", positions, POSITIONS)
        tokens = Embedding(vocabulary, width, rng=rng, dtype=dtype)
        stack = TransformerEncoder(
            blocks,
            width,
            heads,
            4 * width if hidden is None else hidden,
            rng=rng,
            causal=True,
            activation="gelu",
            rotary=positions == "rotary",
            **chosen,
        )
        head = None if tied else Dense(width, vocabulary, rng=rng, bias=False, dtype=dtype)
        added: LearnedPositions | PositionalEncoding | None = None
        if positions == "learned":
            added = LearnedPositions(context, width, rng=rng, dtype=dtype)
        elif positions == "sinusoidal":
            added = PositionalEncoding()
        self._assemble(
            tokens, added, stack, head, context=context, dropout=chosen["dropout"], rng=rng, std=STD
        )
