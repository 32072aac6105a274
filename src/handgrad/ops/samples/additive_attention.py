"""Sample inputs of `ops.additive_attention`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._attention import (
    FEWER_AXES,
    MASK,
    MASKED_BY,
    random_masks,
    states,
    weights,
)
from handgrad.ops.samples._makers import booleans, extreme, fixed, normal, random_sizes
from handgrad.ops.samples._table import NO_EMPTY_AXIS, Maker, OpSamples, SampleRow, row


def _additive(
    batch: int, steps: int, size: int, others: int, other_size: int, hidden: int
) -> dict[str, Maker]:
    return {
        **states(batch, steps, size, others, other_size),
        "weight_s": normal(hidden, size),
        "weight_h": normal(hidden, other_size),
        "v": normal(hidden),
    }


_ROWS: Final = (
    row("usual", "usual", _additive(2, 3, 4, 5, 3, 2)),
    row("square", "usual", _additive(3, 3, 3, 3, 3, 3)),
    row("one step", "one row", _additive(2, 1, 3, 4, 5, 2)),
    row("one state to look at", "one row", _additive(2, 3, 4, 1, 3, 2)),
    row("prime sizes", "prime sizes", _additive(2, 3, 5, 7, 2, 11)),
    row("no sequences", "empty", _additive(0, 3, 4, 5, 3, 2)),
    row("no steps", "empty", _additive(2, 0, 4, 5, 3, 2)),
    row("mask", "option", {**_additive(2, 3, 4, 5, 3, 2), "mask": booleans(2, 3, 5, share=0.8)}),
    row("lengths", "option", {**_additive(3, 2, 4, 5, 3, 2), "lengths": fixed([5, 1, 3], int)}),
    row(
        "masked rows",
        "masked rows",
        {**_additive(2, 3, 4, 3, 2, 2), "mask": fixed(MASK, bool)},
        not_annotated=FEWER_AXES,
    ),
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

_SMALL: Final = row(
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


def _random(rng: np.random.Generator) -> SampleRow:
    batch, steps, size, others, other_size, hidden = random_sizes(rng, 6, high=5)
    makers = _additive(batch, steps, size, others, other_size, hidden)
    return row("random", "usual", {**makers, **random_masks(rng, batch, steps, others)})


def _scaled(
    batch: int, steps: int, size: int, others: int, other_size: int, hidden: int
) -> dict[str, Maker]:
    """As `_additive`, scores of one magnitude whatever the sizes."""
    return {
        **_additive(batch, steps, size, others, other_size, hidden),
        "weight_s": normal(hidden, size, scale=max(size, 1) ** -0.5),
        "weight_h": normal(hidden, other_size, scale=max(other_size, 1) ** -0.5),
    }


def _additively_attended(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """The concatenated form: v·tanh(W [s; h]) with W = [W_s, W_h]."""
    torch, s, h = F.torch, arrays["s"], arrays["h"]
    pairs = (s.shape[0], s.shape[1], h.shape[1])
    both = torch.cat(
        [s[:, :, None].expand(*pairs, s.shape[2]), h[:, None].expand(*pairs, h.shape[2])], dim=-1
    )
    weight = torch.cat([arrays["weight_s"], arrays["weight_h"]], dim=1)
    return weights(F, torch.tanh(F.linear(both, weight)) @ arrays["v"], arrays, options) @ h


SAMPLES: Final = OpSamples(
    gradients=("s", "h", "weight_s", "weight_h", "v"),
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", _scaled(1, 1, 1, 1, 1, 1)),
        row("awkward", "prime sizes", _scaled(1, 5, 4, 123, 3, 7)),
        row(
            "mask of most",
            "masked rows",
            {
                **_scaled(2, 7, 4, 5, 3, 2),
                "mask": booleans(1, 7, 5, share=0.2, some=False),
            },
            smooth=True,
        ),
        row(
            "lengths and mask",
            "masked rows",
            {
                **_scaled(3, 4, 3, 5, 4, 2),
                "mask": booleans(3, 1, 5, share=0.6, some=False),
                "lengths": fixed([1, 5, 3], int),
            },
            smooth=True,
        ),
        row("no units", "empty", _scaled(2, 3, 4, 5, 3, 0), not_in_torch=NO_EMPTY_AXIS),
        row("states of no size", "empty", _scaled(2, 3, 0, 5, 0, 2), not_in_torch=NO_EMPTY_AXIS),
        row("large", "usual", _scaled(3, 31, 37, 41, 29, 43), large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[[1, -1], [2, 3]]]),
    random=_random,
    torch=_additively_attended,
    masked_by=MASKED_BY,
    saturates=True,
)
