"""Sample inputs of `ops.cosine_attention`."""

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
from handgrad.ops.samples._makers import booleans, extreme, fixed, pick, random_sizes
from handgrad.ops.samples._table import NO_EMPTY_AXIS, OpSamples, SampleRow, row

_ROWS: Final = (
    row("usual", "usual", states(2, 3, 4, 5, 4)),
    row("square", "usual", states(3, 3, 3, 3, 3)),
    row("one step", "one row", states(2, 1, 3, 4, 3)),
    row("one state to look at", "one row", states(2, 3, 4, 1, 4)),
    row("prime sizes", "prime sizes", states(2, 3, 11, 7, 11)),
    row("no sequences", "empty", states(0, 3, 4, 5, 4)),
    row("no steps", "empty", states(2, 0, 4, 5, 4)),
    row("eps", "option", states(2, 3, 4, 5, 4), eps=0.5),
    row("mask", "option", {**states(2, 3, 4, 5, 4), "mask": booleans(2, 3, 5, share=0.8)}),
    row("lengths", "option", {**states(3, 2, 4, 5, 4), "lengths": fixed([5, 1, 3], int)}),
    row(
        "masked rows",
        "masked rows",
        {**states(2, 3, 4, 3, 4), "mask": fixed(MASK, bool)},
        not_annotated=FEWER_AXES,
    ),
    row(
        "no states of some",
        "masked rows",
        {**states(3, 2, 4, 5, 4), "lengths": fixed([5, 0, 3], int)},
    ),
    row(
        "a state of zeros",
        "extreme values",
        {"s": fixed([[[0, 0], [1, -1]]]), "h": fixed([[[2, 1], [0, 0], [1, 3]]])},
    ),
    row("large and small values", "extreme values", {"s": extreme(2, 3, 4), "h": extreme(2, 5, 4)}),
)

_SMALL: Final = row(
    "small",
    "usual",
    {"s": fixed([[[3, 4], [0, 2]]]), "h": fixed([[[4, 3], [1, 0], [0, -5]]])},
    eps=0.0,
)


def _random(rng: np.random.Generator) -> SampleRow:
    batch, steps, size, others = random_sizes(rng, 4, high=5)
    makers = states(batch, steps, size, others, size)
    masks = random_masks(rng, batch, steps, others)
    return row("random", "usual", {**makers, **masks}, eps=pick(rng, 1e-8, 1e-3, 0.5))


def _cosine_attended(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    s, h = arrays["s"], arrays["h"]
    unit_s, unit_h = (
        x / ((x * x).sum(dim=-1, keepdim=True) + options.get("eps", 1e-8)).sqrt() for x in (s, h)
    )
    return weights(F, unit_s @ unit_h.mT, arrays, options) @ h


SAMPLES: Final = OpSamples(
    gradients=("s", "h"),
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", states(1, 1, 1, 1, 1)),
        row("awkward", "prime sizes", states(1, 5, 123, 3, 123)),
        row(
            "mask of most",
            "masked rows",
            {**states(2, 7, 4, 5, 4), "mask": booleans(1, 7, 5, share=0.2, some=False)},
            smooth=True,
        ),
        row("states of no size", "empty", states(2, 3, 0, 5, 0), not_in_torch=NO_EMPTY_AXIS),
        row("large", "usual", states(3, 67, 32, 131, 32), large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[[1, -1], [2, 3]]]),
    random=_random,
    torch=_cosine_attended,
    masked_by=MASKED_BY,
    saturates=True,
)
