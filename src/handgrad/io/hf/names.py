"""The names of each family's arrays, theirs and ours, as one table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Entry:
    """Arrays of ours, one below the other, that are theirs, one below the other.

    So one packed projection is three of ours, or two of theirs are one of ours. With `transposed`
    their matrices are (in, out).
    """

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    transposed: bool = False


@dataclass(frozen=True)
class ArrayNames:
    """The arrays of a family.

    prefix: stands before all names but `outside` where a file is that of a model with a head;
    block, their_block: the names before those of a block, with {} for its number; constants: what
    files also have, and follows from the sizes; heads: weights of files for which a model may have
    no place; chosen: those that a setting takes or leaves, with its name; copies: arrays that may
    stand in a file a second time, and what they repeat; renamed: older names, and what they are
    now.
    """

    prefix: str
    entries: tuple[Entry, ...]
    block: str
    their_block: str
    block_entries: tuple[Entry, ...]
    outside: tuple[str, ...] = ()
    constants: str = "(?!)"
    heads: str = "(?!)"
    chosen: tuple[tuple[str, str], ...] = ()
    copies: tuple[tuple[str, str], ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()

    def all_entries(self, blocks: int) -> Iterator[Entry]:
        """Those of a model with so many blocks, without the prefix."""
        yield from self.entries
        for i in range(blocks):
            ours, theirs = self.block.format(i), self.their_block.format(i)
            for each in self.block_entries:
                yield Entry(
                    tuple(ours + name for name in each.ours),
                    tuple(theirs + name for name in each.theirs),
                    each.transposed,
                )

    def plain(self, name: str) -> str:
        """A name of a file as the entries have it: without prefix, and in today's form."""
        name = name.removeprefix(self.prefix)
        for old, new in self.renamed:
            name = re.sub(old, new, name)
        return name

    def in_file(self, name: str) -> str:
        """The name of an entry as a model with a head writes it."""
        return name if name in self.outside else self.prefix + name


def _same(ours: str, theirs: str, *, transposed: bool = False) -> tuple[Entry, ...]:
    """Weight and bias of one linear map."""
    return (
        Entry((f"{ours}.weight",), (f"{theirs}.weight",), transposed),
        Entry((f"{ours}.bias",), (f"{theirs}.bias",)),
    )


def _norm(ours: str, theirs: str) -> tuple[Entry, ...]:
    return (
        Entry((f"{ours}.gamma",), (f"{theirs}.weight",)),
        Entry((f"{ours}.beta",), (f"{theirs}.bias",)),
    )


def _packed(kind: str, theirs: str, *, transposed: bool = False) -> Entry:
    """Queries, keys and values in one array of theirs."""
    ours = tuple(f"attention.inner.{name}_proj.{kind}" for name in "qkv")
    return Entry(ours, (f"{theirs}.{kind}",), transposed)


def _gated(kind: str) -> Entry:
    return Entry(
        (f"feed_forward.inner.linear1.{kind}",),
        (f"mlp.gate_proj.{kind}", f"mlp.up_proj.{kind}"),
    )


GPT2: Final = ArrayNames(
    prefix="transformer.",
    entries=(
        Entry(("tokens.weight",), ("wte.weight",)),
        Entry(("positions.weight",), ("wpe.weight",)),
        *_norm("blocks.norm", "ln_f"),
        Entry(("head.weight",), ("lm_head.weight",)),
    ),
    block="blocks.{}.",
    their_block="h.{}.",
    block_entries=(
        *_norm("attention.norm", "ln_1"),
        _packed("weight", "attn.c_attn", transposed=True),
        _packed("bias", "attn.c_attn"),
        *_same("attention.inner.o_proj", "attn.c_proj", transposed=True),
        *_norm("feed_forward.norm", "ln_2"),
        *_same("feed_forward.inner.linear1", "mlp.c_fc", transposed=True),
        *_same("feed_forward.inner.linear2", "mlp.c_proj", transposed=True),
    ),
    outside=("lm_head.weight",),
    constants=r"h\.\d+\.attn\.(masked_)?bias",
    chosen=(("tied", r"lm_head\.weight"),),
    copies=(("lm_head.weight", "wte.weight"),),
)

LLAMA: Final = ArrayNames(
    prefix="model.",
    entries=(
        Entry(("tokens.weight",), ("embed_tokens.weight",)),
        *_norm("blocks.norm", "norm"),
        Entry(("head.weight",), ("lm_head.weight",)),
    ),
    block="blocks.{}.",
    their_block="layers.{}.",
    block_entries=(
        *_norm("attention.norm", "input_layernorm"),
        *(
            entry
            for name in "qkvo"
            for entry in _same(f"attention.inner.{name}_proj", f"self_attn.{name}_proj")
        ),
        *(
            Entry((f"attention.inner.{name}.gamma",), (f"self_attn.{name}.weight",))
            for name in ("q_norm", "k_norm")
        ),
        *_norm("feed_forward.norm", "post_attention_layernorm"),
        _gated("weight"),
        _gated("bias"),
        *_same("feed_forward.inner.linear2", "mlp.down_proj"),
    ),
    outside=("lm_head.weight",),
    constants=r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq",
    chosen=(("tied", r"lm_head\.weight"),),
    copies=(("lm_head.weight", "embed_tokens.weight"),),
)

BERT: Final = ArrayNames(
    prefix="bert.",
    entries=(
        Entry(("tokens.weight",), ("embeddings.word_embeddings.weight",)),
        Entry(("positions.weight",), ("embeddings.position_embeddings.weight",)),
        Entry(("types.weight",), ("embeddings.token_type_embeddings.weight",)),
        *_norm("norm", "embeddings.LayerNorm"),
        *_same("pooler", "pooler.dense"),
    ),
    block="blocks.{}.",
    their_block="encoder.layer.{}.",
    block_entries=(
        *(
            entry
            for name, word in (("q", "query"), ("k", "key"), ("v", "value"))
            for entry in _same(f"attention.inner.{name}_proj", f"attention.self.{word}")
        ),
        *_same("attention.inner.o_proj", "attention.output.dense"),
        *_norm("attention.norm", "attention.output.LayerNorm"),
        *_same("feed_forward.inner.linear1", "intermediate.dense"),
        *_same("feed_forward.inner.linear2", "output.dense"),
        *_norm("feed_forward.norm", "output.LayerNorm"),
    ),
    constants=r"embeddings\.position_ids",
    heads=r"cls\..*|pooler\..*",
    chosen=(("pooling", r"pooler\..*"),),
    renamed=((r"LayerNorm\.gamma$", "LayerNorm.weight"), (r"LayerNorm\.beta$", "LayerNorm.bias")),
)
