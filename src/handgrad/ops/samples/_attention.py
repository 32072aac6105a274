"""Sample inputs that attention ops share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import booleans, fixed, normal, pick
from handgrad.ops.samples._table import Maker

#: The reason for which annotations of bias and mask do not hold where these have fewer axes.
FEWER_AXES: Final = "an annotation for every number of axes would say nothing"
MASKED_BY: Final = ("mask", "lengths", "causal", "dropout_p")
#: The second query may look nowhere, the third at one key.
MASK: Final = ((True, True, False), (False, False, False), (False, True, False))


def states(batch: int, steps: int, size: int, others: int, other_size: int) -> dict[str, Maker]:
    return {"s": normal(batch, steps, size), "h": normal(batch, others, other_size)}


def random_masks(rng: np.random.Generator, batch: int, steps: int, others: int) -> dict[str, Maker]:
    makers: dict[str, Maker] = {}
    if rng.random() < 0.5:
        makers["mask"] = booleans(*pick(rng, (batch, steps, others), (steps, others)), share=0.7)
    if rng.random() < 0.5:
        makers["lengths"] = fixed(rng.integers(0, others + 1, batch), int)
    return makers


def pairs_that_count(F: Any, scores: Any, arrays: Mapping[str, Any], options: Any) -> Any:
    """True where a query may look at a key, in the shape of the scores."""
    torch, (queries, keys) = F.torch, scores.shape[-2:]
    counts = torch.ones(tuple(scores.shape), dtype=torch.bool)
    if "mask" in arrays:
        counts = counts & arrays["mask"]
    if "lengths" in arrays:
        ones = (1,) * (len(scores.shape) - 1)
        counts = counts & (torch.arange(keys) < arrays["lengths"].reshape(-1, *ones))
    if options.get("causal", False):
        own = options.get("offset", 0) + torch.arange(queries)
        counts = counts & (torch.arange(keys) <= own[:, None])
    return counts


def weights(F: Any, scores: Any, arrays: Mapping[str, Any], options: Any) -> Any:
    """Softmax over the pairs that count, 0 in rows without any."""
    counts = pairs_that_count(F, scores, arrays, options)
    some = counts.any(dim=-1, keepdim=True)
    return F.softmax(scores.masked_fill(~counts & some, -F.torch.inf), dim=-1) * some
