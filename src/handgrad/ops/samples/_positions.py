"""Sample inputs that positional_encoding and rotary share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import extreme, fixed, normal, pick, random_shape
from handgrad.ops.samples._table import NOTHING_TO_SUM, SampleRow, row

POSITIONS: Final = (
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

POSITIONS_SMALL: Final = row("small", "usual", {"x": fixed([[1, 2, 0, 3], [4, -1, 2, 1]])})

POSITIONS_COTANGENT: Final = fixed([[1, -2, 3, 1], [2, 4, -1, 3]])


def random_positions(rng: np.random.Generator) -> SampleRow:
    *batch, features = random_shape(rng, 2, 4)
    return row(
        "random",
        "usual",
        {"x": normal(*batch, 2 * features)},
        offset=pick(rng, 0, 5),
        base=pick(rng, 10000.0, 100.0),
    )


def angles(F: Any, x: Any, options: Mapping[str, Any]) -> Any:
    """One angle per step and pair of features."""
    length, features = x.shape[-2:]
    exponent = F.torch.arange(0, features, 2, dtype=F.torch.float64) / features
    steps = options.get("offset", 0) + F.torch.arange(length, dtype=F.torch.float64)
    return F.torch.outer(steps, options.get("base", 10000.0) ** -exponent)


AWKWARD: Final = (
    row("awkward", "prime sizes", {"x": normal(3, 5, 124)}),
    row("far offset", "option", {"x": normal(2, 5, 6)}, offset=1000),
    row("before the start", "option", {"x": normal(5, 6)}, offset=-3),
    row("no features", "empty", {"x": normal(2, 3, 0)}, not_in_torch=NOTHING_TO_SUM),
    row("large", "usual", {"x": normal(5, 67, 128)}, large=True),
)
