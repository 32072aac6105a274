"""Sample inputs of `ops.attention`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._attention import FEWER_AXES, MASK, MASKED_BY, pairs_that_count, weights
from handgrad.ops.samples._makers import (
    between,
    booleans,
    extreme,
    fixed,
    normal,
    pick,
    random_sizes,
)
from handgrad.ops.samples._table import NO_EMPTY_AXIS, Maker, OpSamples, SampleRow, Seed, row
from handgrad.ops.samples.dropout import dropped


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
        "v": normal(*shape, features if values is None else values),
    }


_ROWS: Final = (
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
    row(
        "bias of heads",
        "broadcast",
        {**qkv(2, 2, 3, 4), "bias": normal(2, 1, 1)},
        not_annotated=FEWER_AXES,
    ),
    row("scale", "option", qkv(2, 2, 3, 4), scale=0.3),
    row("causal", "option", qkv(2, 2, 4, 3), causal=True),
    row("causal after others", "option", qkv(2, 2, 2, 3, keys=5), causal=True, offset=3),
    row("mask", "option", {**qkv(2, 2, 3, 4, keys=5), "mask": booleans(2, 1, 3, 5, share=0.8)}),
    row("lengths", "option", {**qkv(3, 2, 3, 4), "lengths": fixed([3, 1, 2], int)}),
    row("dropout", "option", qkv(2, 2, 3, 4), dropout_p=0.4, rng=Seed(5)),
    row("masked rows", "masked rows", {**qkv(2, 2, 3, 4), "mask": fixed(MASK, bool)}),
    row("no keys of some", "masked rows", {**qkv(3, 2, 2, 4), "lengths": fixed([2, 0, 1], int)}),
    row("all dropped", "masked rows", qkv(2, 2, 3, 4), dropout_p=1.0, rng=Seed(5)),
    row(
        "large and small values",
        "extreme values",
        {"q": extreme(1, 2, 3, 4), "k": extreme(1, 2, 5, 4), "v": extreme(1, 2, 5, 3)},
    ),
)

_SMALL: Final = row(
    "small",
    "usual",
    {
        "q": fixed([[[[1, 0, 1, 1], [0, 1, -1, 2]]]]),
        "k": fixed([[[[2, 1, 0, 1], [1, 0, -1, 0], [0, 2, 1, 1]]]]),
        "v": fixed([[[[3, 1], [0, 2], [-1, 4]]]]),
        "bias": fixed([[[[0, 1, 0], [1, 0, 0]]]]),
    },
)


def _random(rng: np.random.Generator) -> SampleRow:
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


def _attended(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """PyTorch's scaled_dot_product_attention; with dropout written out, on the documented mask."""
    torch, (q, k, v) = F.torch, (arrays[name] for name in "qkv")
    scale = options.get("scale") or q.shape[-1] ** -0.5
    bias = arrays.get("bias", torch.zeros((), dtype=q.dtype))
    scores = torch.zeros((*q.shape[:3], k.shape[2]), dtype=q.dtype) + bias
    p = options.get("dropout_p", 0.0)
    if p == 0.0:
        counts = pairs_that_count(F, scores, arrays, options)
        scores = scores.masked_fill(~counts, -torch.inf)
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=scores, scale=scale, enable_gqa=True
        )
    served = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(served, dim=1) for x in (k, v))
    shares = weights(F, scores + scale * q @ k.mT, arrays, options)
    return dropped(F, {"x": shares}, {"p": p, "rng": options["rng"]}) @ v


SAMPLES: Final = OpSamples(
    gradients=("q", "k", "v", "bias"),
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", qkv(1, 1, 1, 1)),
        row("awkward", "prime sizes", qkv(1, 1, 5, 123, keys=3)),
        row("primes", "prime sizes", qkv(2, 3, 7, 5, keys=11, values=13)),
        row("one query of several heads", "one row", qkv(2, 2, 1, 5, keys=7, values=3)),
        row("large scale", "option", qkv(2, 3, 5, 4), scale=1.7),
        row(
            "bias of rows",
            "broadcast",
            {**qkv(2, 3, 5, 4), "bias": normal(3, 1, 5)},
            not_annotated=FEWER_AXES,
        ),
        row(
            "mask of all",
            "option",
            {**qkv(2, 3, 5, 4, keys=7), "mask": booleans(2, 3, 5, 7, share=0.6, some=False)},
        ),
        row(
            "mask of most",
            "masked rows",
            {**qkv(2, 2, 7, 3), "mask": booleans(2, 1, 7, 7, share=0.2, some=False)},
            smooth=True,
        ),
        row(
            "masked everywhere",
            "masked rows",
            {**qkv(1, 2, 3, 4), "mask": booleans(3, 3, share=0.0, some=False)},
            smooth=True,
        ),
        row("causal with more keys", "option", qkv(2, 3, 3, 4, keys=8), causal=True),
        row("causal far after", "option", qkv(2, 3, 3, 4, keys=8), causal=True, offset=5),
        row("causal before the keys", "option", qkv(1, 2, 5, 3), causal=True, offset=-2),
        row(
            "everything at once",
            "option",
            {
                **qkv(3, 4, 5, 4, groups=2, values=3),
                "bias": normal(1, 4, 5, 5),
                "mask": booleans(3, 1, 5, 5, share=0.8, some=False),
                "lengths": fixed([5, 2, 4], int),
            },
            causal=True,
            scale=0.9,
            dropout_p=0.3,
            rng=Seed(7),
        ),
        row("half dropped", "option", qkv(2, 2, 5, 4, keys=7), dropout_p=0.5, rng=Seed(7)),
        row("spread scores", "option", qkv(2, 2, 5, 4), scale=10.0),
        row("no heads", "empty", qkv(2, 0, 3, 4, groups=2), not_in_torch=NO_EMPTY_AXIS),
        row("no values", "empty", qkv(2, 2, 3, 4, values=0), not_in_torch=NO_EMPTY_AXIS),
        row(
            "no values of one query",
            "empty",
            qkv(2, 2, 1, 4, values=0),
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "no queries with bias",
            "empty",
            {
                **qkv(2, 2, 0, 4, keys=3),
                "bias": normal(2, 1, 0, 3),
                "mask": booleans(0, 3, share=0.6, some=False),
            },
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row("large", "usual", qkv(3, 4, 67, 32, groups=2, keys=131), large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[[[1, -1], [2, 3]]]]),
    random=_random,
    torch=_attended,
    masked_by=MASKED_BY,
    saturates=True,
)
