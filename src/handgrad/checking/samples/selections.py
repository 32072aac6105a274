"""What picks values out: embedding, dropout."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.checking.samples.makers import (
    extreme,
    fixed,
    labels,
    normal,
    pick,
    random_shape,
    random_sizes,
)
from handgrad.checking.samples.table import OpSamples, Row, Seed, row

# With padding_idx y shows a row whose gradient is 0 all the same: finite differences do not apply.
_EMBEDDING: Final = (
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

_EMBEDDING_SMALL: Final = row(
    "small",
    "usual",
    {"tokens": fixed([2, 0, 2], int), "weight": fixed([[1, 2], [3, 4], [5, 6]])},
)


def _random_embedding(rng: np.random.Generator) -> Row:
    rows, features = random_sizes(rng, 2)
    makers = {"tokens": labels(rows, *random_shape(rng, 0, 3)), "weight": normal(rows, features)}
    return row("random", "usual", makers)


_DROPOUT: Final = (
    row("usual", "usual", {"x": normal(3, 5)}, p=0.3, rng=Seed(5)),
    row("four axes", "usual", {"x": normal(2, 3, 4, 5)}, p=0.5, rng=Seed(5)),
    row("one row", "one row", {"x": normal(1, 7)}, p=0.5, rng=Seed(5)),
    row("no axes", "one row", {"x": normal()}, p=0.2, rng=Seed(3)),
    row("prime sizes", "prime sizes", {"x": normal(7, 11)}, p=0.5, rng=Seed(5)),
    row("no rows", "empty", {"x": normal(0, 7)}, p=0.5, rng=Seed(5)),
    row("half", "option", {"x": normal(3, 5)}, p=0.5, rng=Seed(11)),
    row("none", "option", {"x": normal(3, 5)}, p=0.0, rng=Seed(5)),
    row("inference", "option", {"x": normal(3, 5)}, p=0.5, training=False),
    row("all", "masked rows", {"x": normal(3, 5)}, smooth=True, p=1.0, rng=Seed(5)),
    row("large and small values", "extreme values", {"x": extreme(5, 7)}, p=0.5, rng=Seed(5)),
)

_DROPOUT_SMALL: Final = row(
    "small", "usual", {"x": fixed([[1, 2, 3], [4, 5, 6]])}, p=0.5, rng=Seed(5)
)


def _random_dropout(rng: np.random.Generator) -> Row:
    return row(
        "random",
        "usual",
        {"x": normal(*random_shape(rng, 0, 4))},
        p=pick(rng, 0.1, 0.3, 0.5, 0.9),
        rng=Seed(int(rng.integers(1000))),
        training=pick(rng, True, True, False),
    )


TABLE: Final = {
    "embedding": OpSamples(
        ("weight",),
        _EMBEDDING,
        _EMBEDDING_SMALL,
        fixed([[1, 2], [3, -1], [4, 0]]),
        _random_embedding,
    ),
    "dropout": OpSamples(
        ("x",), _DROPOUT, _DROPOUT_SMALL, fixed([[1, -2, 3], [2, 4, -1]]), _random_dropout
    ),
}
