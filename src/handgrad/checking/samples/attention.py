"""What looks at other steps, and what tells it where they are: attention ops, positions."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.checking.samples.makers import (
    between,
    booleans,
    extreme,
    fixed,
    normal,
    pick,
    random_shape,
    random_sizes,
)
from handgrad.checking.samples.table import Maker, OpSamples, Row, Seed, row


def qkv(
    batch: int,
    heads: int,
    queries: int,
    features: int,
    *,
    groups: int | None = None,
    keys: int | None = None,
    values: int | None = None,
) -> dict[str, Maker]:
    """q, k and v, as many key-value heads, keys and features of a value as of q unless given."""
    shape = (batch, groups or heads, keys or queries)
    return {
        "q": normal(batch, heads, queries, features),
        "k": normal(*shape, features),
        "v": normal(*shape, values or features),
    }


#: The second query may look nowhere, the third at one key.
_MASK: Final = ((True, True, False), (False, False, False), (False, True, False))

_ATTENTION: Final = (
    row("usual", "usual", {**qkv(2, 2, 4, 3, keys=5, values=2), "bias": normal(2, 2, 4, 5)}),
    row("square", "usual", qkv(2, 2, 4, 4)),
    row("one query", "one row", qkv(1, 2, 1, 3, keys=5)),
    row("one key", "one row", qkv(2, 2, 3, 4, keys=1)),
    row("prime sizes", "prime sizes", qkv(1, 3, 5, 2, keys=7, values=5)),
    row("no sequences", "empty", qkv(0, 2, 3, 4)),
    row("no queries", "empty", qkv(2, 2, 0, 4, keys=3)),
    row("grouped heads", "option", qkv(1, 4, 3, 2, groups=2)),
    row("one key-value head", "option", qkv(2, 3, 3, 2, groups=1)),
    row("bias of pairs", "broadcast", {**qkv(2, 2, 3, 4), "bias": normal(3, 3)}),
    row("bias of heads", "broadcast", {**qkv(2, 2, 3, 4), "bias": normal(2, 1, 1)}),
    row("scale", "option", qkv(2, 2, 3, 4), scale=0.3),
    row("causal", "option", qkv(2, 2, 4, 3), causal=True),
    row("causal after others", "option", qkv(2, 2, 2, 3, keys=5), causal=True, offset=3),
    row("mask", "option", {**qkv(2, 2, 3, 4, keys=5), "mask": booleans(2, 1, 3, 5, share=0.8)}),
    row("lengths", "option", {**qkv(3, 2, 3, 4), "lengths": fixed([3, 1, 2], int)}),
    row("dropout", "option", qkv(2, 2, 3, 4), dropout_p=0.4, rng=Seed(5)),
    row("masked rows", "masked rows", {**qkv(2, 2, 3, 4), "mask": fixed(_MASK, bool)}),
    row("no keys of some", "masked rows", {**qkv(3, 2, 2, 4), "lengths": fixed([2, 0, 1], int)}),
    row("all dropped", "masked rows", qkv(2, 2, 3, 4), dropout_p=1.0, rng=Seed(5)),
    row(
        "large and small values",
        "extreme values",
        {"q": extreme(1, 2, 3, 4), "k": extreme(1, 2, 5, 4), "v": extreme(1, 2, 5, 3)},
    ),
)

_ATTENTION_SMALL: Final = row(
    "small",
    "usual",
    {
        "q": fixed([[[[1, 0, 1, 1], [0, 1, -1, 2]]]]),
        "k": fixed([[[[2, 1, 0, 1], [1, 0, -1, 0], [0, 2, 1, 1]]]]),
        "v": fixed([[[[3, 1], [0, 2], [-1, 4]]]]),
        "bias": fixed([[[[0, 1, 0], [1, 0, 0]]]]),
    },
)


def _random_attention(rng: np.random.Generator) -> Row:
    queries, keys, features, values = random_sizes(rng, 4, high=7)
    batch, groups, served = (between(rng, 1, 3) for _ in range(3))
    heads = groups * served
    makers = qkv(batch, heads, queries, features, groups=groups, keys=keys, values=values)
    pairs = (batch, heads, queries, keys)
    if rng.random() < 0.5:
        makers["bias"] = normal(*pick(rng, pairs, pairs[2:], (heads, 1, 1)))
    if rng.random() < 0.5:
        makers["mask"] = booleans(*pick(rng, pairs, pairs[2:]), share=0.7)
    if rng.random() < 0.5:
        makers["lengths"] = fixed(rng.integers(0, keys + 1, batch), int)
    return row(
        "random",
        "usual",
        makers,
        causal=pick(rng, True, False),
        offset=pick(rng, 0, keys - queries),
        scale=pick(rng, None, 0.5),
        dropout_p=pick(rng, 0.0, 0.3),
        rng=Seed(int(rng.integers(1000))),
    )


def _states(batch: int, steps: int, size: int, others: int, other_size: int) -> dict[str, Maker]:
    return {"s": normal(batch, steps, size), "h": normal(batch, others, other_size)}


def _additive(
    batch: int, steps: int, size: int, others: int, other_size: int, hidden: int
) -> dict[str, Maker]:
    return {
        **_states(batch, steps, size, others, other_size),
        "weight_s": normal(hidden, size),
        "weight_h": normal(hidden, other_size),
        "v": normal(hidden),
    }


_ADDITIVE: Final = (
    row("usual", "usual", _additive(2, 3, 4, 5, 3, 2)),
    row("square", "usual", _additive(3, 3, 3, 3, 3, 3)),
    row("one step", "one row", _additive(2, 1, 3, 4, 5, 2)),
    row("one state to look at", "one row", _additive(2, 3, 4, 1, 3, 2)),
    row("prime sizes", "prime sizes", _additive(2, 3, 5, 7, 2, 11)),
    row("no sequences", "empty", _additive(0, 3, 4, 5, 3, 2)),
    row("no steps", "empty", _additive(2, 0, 4, 5, 3, 2)),
    row("mask", "option", {**_additive(2, 3, 4, 5, 3, 2), "mask": booleans(2, 3, 5, share=0.8)}),
    row("lengths", "option", {**_additive(3, 2, 4, 5, 3, 2), "lengths": fixed([5, 1, 3], int)}),
    row("masked rows", "masked rows", {**_additive(2, 3, 4, 3, 2, 2), "mask": fixed(_MASK, bool)}),
    row(
        "no states of some",
        "masked rows",
        {**_additive(3, 2, 4, 5, 3, 2), "lengths": fixed([5, 0, 3], int)},
    ),
    row(
        "large and small values",
        "extreme values",
        {**_additive(2, 3, 4, 5, 3, 2), "s": extreme(2, 3, 4), "h": extreme(2, 5, 3)},
    ),
)

_ADDITIVE_SMALL: Final = row(
    "small",
    "usual",
    {
        "s": fixed([[[1, 0], [1, -1]]]),
        "h": fixed([[[1, 2], [0, 1], [-1, 0]]]),
        "weight_s": fixed([[1, 0], [0, 1]]),
        "weight_h": fixed([[1, 0], [1, -1]]),
        "v": fixed([1, 2]),
    },
)


def _random_additive(rng: np.random.Generator) -> Row:
    batch, steps, size, others, other_size, hidden = random_sizes(rng, 6, high=5)
    makers = _additive(batch, steps, size, others, other_size, hidden)
    return row("random", "usual", {**makers, **_random_masks(rng, batch, steps, others)})


def _random_masks(
    rng: np.random.Generator, batch: int, steps: int, others: int
) -> dict[str, Maker]:
    makers: dict[str, Maker] = {}
    if rng.random() < 0.5:
        makers["mask"] = booleans(*pick(rng, (batch, steps, others), (steps, others)), share=0.7)
    if rng.random() < 0.5:
        makers["lengths"] = fixed(rng.integers(0, others + 1, batch), int)
    return makers


_COSINE: Final = (
    row("usual", "usual", _states(2, 3, 4, 5, 4)),
    row("square", "usual", _states(3, 3, 3, 3, 3)),
    row("one step", "one row", _states(2, 1, 3, 4, 3)),
    row("one state to look at", "one row", _states(2, 3, 4, 1, 4)),
    row("prime sizes", "prime sizes", _states(2, 3, 11, 7, 11)),
    row("no sequences", "empty", _states(0, 3, 4, 5, 4)),
    row("no steps", "empty", _states(2, 0, 4, 5, 4)),
    row("eps", "option", _states(2, 3, 4, 5, 4), eps=0.5),
    row("mask", "option", {**_states(2, 3, 4, 5, 4), "mask": booleans(2, 3, 5, share=0.8)}),
    row("lengths", "option", {**_states(3, 2, 4, 5, 4), "lengths": fixed([5, 1, 3], int)}),
    row("masked rows", "masked rows", {**_states(2, 3, 4, 3, 4), "mask": fixed(_MASK, bool)}),
    row(
        "no states of some",
        "masked rows",
        {**_states(3, 2, 4, 5, 4), "lengths": fixed([5, 0, 3], int)},
    ),
    row(
        "a state of zeros",
        "extreme values",
        {"s": fixed([[[0, 0], [1, -1]]]), "h": fixed([[[2, 1], [0, 0], [1, 3]]])},
    ),
    row("large and small values", "extreme values", {"s": extreme(2, 3, 4), "h": extreme(2, 5, 4)}),
)

_COSINE_SMALL: Final = row(
    "small",
    "usual",
    {"s": fixed([[[3, 4], [0, 2]]]), "h": fixed([[[4, 3], [1, 0], [0, -5]]])},
    eps=0.0,
)


def _random_cosine(rng: np.random.Generator) -> Row:
    batch, steps, size, others = random_sizes(rng, 4, high=5)
    makers = _states(batch, steps, size, others, size)
    masks = _random_masks(rng, batch, steps, others)
    return row("random", "usual", {**makers, **masks}, eps=pick(rng, 1e-8, 1e-3, 0.5))


_POSITIONS: Final = (
    row("usual", "usual", {"x": normal(2, 3, 4)}),
    row("square", "usual", {"x": normal(4, 4)}),
    row("one step", "one row", {"x": normal(2, 1, 6)}),
    row("prime sizes", "prime sizes", {"x": normal(3, 7, 2)}),
    row("no sequences", "empty", {"x": normal(0, 3, 4)}),
    row("no steps", "empty", {"x": normal(2, 0, 4)}),
    row("heads", "broadcast", {"x": normal(2, 3, 4, 6)}),
    row("offset", "option", {"x": normal(2, 3, 4)}, offset=7),
    row("base", "option", {"x": normal(2, 3, 4)}, base=100.0),
    row("large and small values", "extreme values", {"x": extreme(3, 5, 4)}),
)
_POSITIONS_SMALL: Final = row("small", "usual", {"x": fixed([[1, 2, 0, 3], [4, -1, 2, 1]])})
_POSITIONS_COTANGENT: Final = fixed([[1, -2, 3, 1], [2, 4, -1, 3]])


def _random_positions(rng: np.random.Generator) -> Row:
    *batch, features = random_shape(rng, 2, 4)
    return row(
        "random",
        "usual",
        {"x": normal(*batch, 2 * features)},
        offset=pick(rng, 0, 5),
        base=pick(rng, 10000.0, 100.0),
    )


TABLE: Final = {
    "attention": OpSamples(
        ("q", "k", "v", "bias"),
        _ATTENTION,
        _ATTENTION_SMALL,
        fixed([[[[1, -1], [2, 3]]]]),
        _random_attention,
    ),
    "additive_attention": OpSamples(
        ("s", "h", "weight_s", "weight_h", "v"),
        _ADDITIVE,
        _ADDITIVE_SMALL,
        fixed([[[1, -1], [2, 3]]]),
        _random_additive,
    ),
    "cosine_attention": OpSamples(
        ("s", "h"), _COSINE, _COSINE_SMALL, fixed([[[1, -1], [2, 3]]]), _random_cosine
    ),
    "positional_encoding": OpSamples(
        ("x",), _POSITIONS, _POSITIONS_SMALL, _POSITIONS_COTANGENT, _random_positions
    ),
    "rotary": OpSamples(
        ("x",), _POSITIONS, _POSITIONS_SMALL, _POSITIONS_COTANGENT, _random_positions
    ),
}
