"""Sample inputs of `ops.matmul`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._makers import between, extreme, fixed, normal, pick, random_sizes
from handgrad.ops.samples._table import NOTHING_TO_SUM, OpSamples, SampleRow, row

_BROADCASTS: Final = "a *batch annotation cannot say that axes broadcast or that one is missing"

_ROWS: Final = (
    row("usual", "usual", {"a": normal(3, 4), "b": normal(4, 2)}),
    row("square", "usual", {"a": normal(4, 4), "b": normal(4, 4)}),
    row("one row", "one row", {"a": normal(1, 5), "b": normal(5, 3)}),
    row("one column", "one row", {"a": normal(5, 3), "b": normal(3, 1)}),
    row("prime sizes", "prime sizes", {"a": normal(7, 11), "b": normal(11, 5)}),
    row("no rows", "empty", {"a": normal(0, 4), "b": normal(4, 3)}),
    row("nothing to sum", "empty", {"a": normal(3, 0), "b": normal(0, 2)}),
    row("batch", "usual", {"a": normal(2, 3, 4), "b": normal(2, 4, 5)}),
    row(
        "two batches broadcast",
        "broadcast",
        {"a": normal(3, 1, 2, 4), "b": normal(2, 4, 3)},
        not_annotated=_BROADCASTS,
    ),
    row(
        "vector on the left",
        "broadcast",
        {"a": normal(4), "b": normal(2, 4, 3)},
        not_annotated=_BROADCASTS,
    ),
    row(
        "vector on the right",
        "broadcast",
        {"a": normal(5, 4), "b": normal(4)},
        not_annotated=_BROADCASTS,
    ),
    row("two vectors", "broadcast", {"a": normal(5), "b": normal(5)}, not_annotated=_BROADCASTS),
    row("tiles", "option", {"a": normal(4, 6), "b": normal(6, 4)}, tile=(2, 3)),
    row("uneven tiles", "option", {"a": normal(5, 7), "b": normal(7, 3)}, tile=(2, 3)),
    row("large and small values", "extreme values", {"a": extreme(3, 5), "b": extreme(5, 4)}),
)

_SMALL: Final = row(
    "small", "usual", {"a": fixed([[1, 2, 0], [3, -1, 2]]), "b": fixed([[2, 1], [0, 3], [1, -1]])}
)


def _random(rng: np.random.Generator) -> SampleRow:
    m, k, n = random_sizes(rng, 3)
    makers = pick(
        rng,
        {"a": normal(m, k), "b": normal(k, n)},
        {"a": normal(2, m, k), "b": normal(2, k, n)},
        {"a": normal(3, 1, m, k), "b": normal(2, k, n)},
    )
    tile = pick(rng, None, (between(rng, 1, 5), between(rng, 1, 5)))
    return row("random", "usual", makers, tile=tile)


SAMPLES: Final = OpSamples(
    gradients=("a", "b"),
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", {"a": normal(1, 1), "b": normal(1, 1)}),
        row("awkward", "prime sizes", {"a": normal(5, 123), "b": normal(123, 3)}),
        row("primes", "prime sizes", {"a": normal(17, 29), "b": normal(29, 37)}),
        row("around a register tile", "usual", {"a": normal(15, 33), "b": normal(33, 65)}),
        row("one long row", "one row", {"a": normal(1, 31), "b": normal(31, 123)}),
        row("one long column", "one row", {"a": normal(123, 31), "b": normal(31, 1)}),
        row("inner one", "one row", {"a": normal(7, 1), "b": normal(1, 5)}),
        *(
            row(label, "empty", {"a": a, "b": b}, not_in_torch=NOTHING_TO_SUM)
            for label, a, b in (
                ("no columns", normal(3, 4), normal(4, 0)),
                ("nothing at all", normal(0, 0), normal(0, 0)),
                ("batch, inner empty", normal(2, 3, 0), normal(2, 0, 5)),
            )
        ),
        row("batch of two axes", "usual", {"a": normal(2, 3, 5, 7), "b": normal(2, 3, 7, 4)}),
        row("batch empty", "empty", {"a": normal(0, 5, 7), "b": normal(0, 7, 4)}),
        row(
            "vector and matrix",
            "broadcast",
            {"a": normal(7), "b": normal(7, 4)},
            not_annotated=_BROADCASTS,
        ),
        row("large", "usual", {"a": normal(257, 401), "b": normal(401, 131)}, large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[1, -1], [2, 3]]),
    random=_random,
    torch=lambda F, arrays, options: arrays["a"] @ arrays["b"],
)
