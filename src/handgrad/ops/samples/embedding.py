"""Sample inputs of `ops.embedding`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._makers import extreme, fixed, labels, normal, random_shape, random_sizes
from handgrad.ops.samples._table import NOTHING_TO_SUM, OpSamples, SampleRow, row

# With padding_idx y shows a row whose gradient is 0 all the same: finite differences do not apply.
_ROWS: Final = (
    row("usual", "usual", {"tokens": labels(5, 2, 3), "weight": normal(5, 4)}),
    row("square", "usual", {"tokens": labels(4, 4), "weight": normal(4, 4)}),
    row("repeats", "usual", {"tokens": fixed([2, 0, 2, 2, 0], int), "weight": normal(4, 3)}),
    row("one token", "one row", {"tokens": labels(3), "weight": normal(3, 5)}),
    row("a table of one row", "one row", {"tokens": fixed([0, 0, 0], int), "weight": normal(1, 4)}),
    row("prime sizes", "prime sizes", {"tokens": labels(11, 7), "weight": normal(11, 5)}),
    row("no tokens", "empty", {"tokens": labels(4, 0, 3), "weight": normal(4, 5)}),
    row(
        "padding",
        "masked rows",
        {"tokens": fixed([[1, 0, 2], [2, 3, 2]], int), "weight": normal(4, 3)},
        padding_idx=2,
    ),
    row(
        "padding from the end",
        "masked rows",
        {"tokens": fixed([3, 1, 3, 0], int), "weight": normal(4, 3)},
        padding_idx=-1,
    ),
    row(
        "padding only",
        "masked rows",
        {"tokens": fixed([1, 1, 1], int), "weight": normal(4, 3)},
        padding_idx=1,
    ),
    row(
        "padding that is no token",
        "option",
        {"tokens": fixed([1, 3, 1], int), "weight": normal(4, 3)},
        padding_idx=0,
    ),
    row(
        "large and small values",
        "extreme values",
        {"tokens": labels(5, 7), "weight": extreme(5, 3)},
    ),
)

_SMALL: Final = row(
    "small",
    "usual",
    {"tokens": fixed([2, 0, 2], int), "weight": fixed([[1, 2], [3, 4], [5, 6]])},
)


def _random(rng: np.random.Generator) -> SampleRow:
    rows, features = random_sizes(rng, 2)
    makers = {"tokens": labels(rows, *random_shape(rng, 0, 3)), "weight": normal(rows, features)}
    return row("random", "usual", makers)


SAMPLES: Final = OpSamples(
    gradients=("weight",),
    rows=_ROWS,
    awkward=(
        row("many repeats", "usual", {"tokens": labels(2, 123), "weight": normal(5, 3)}),
        row("one row", "one row", {"tokens": labels(1, 5), "weight": normal(1, 1)}),
        row(
            "no features",
            "empty",
            {"tokens": labels(4, 2, 3), "weight": normal(4, 0)},
            not_in_torch=NOTHING_TO_SUM,
        ),
        row(
            "no rows",
            "empty",
            {"tokens": labels(1, 0), "weight": normal(0, 5)},
            not_in_torch=NOTHING_TO_SUM,
        ),
        row("large", "usual", {"tokens": labels(97, 7, 211), "weight": normal(97, 61)}, large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[1, 2], [3, -1], [4, 0]]),
    random=_random,
    torch=lambda F, arrays, options: F.embedding(arrays["tokens"], arrays["weight"], **options),
)
