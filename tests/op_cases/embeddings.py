"""Dropout, embedding and positions: what stands around the blocks of a transformer."""

from __future__ import annotations

from tests.op_cases.case import NOTHING_TO_SUM, Seed, add
from tests.op_cases.makers import integers, normal

_PADDING = "the row of the padding is treated as a constant though y shows it"

add("dropout", "half", {"x": normal(5, 123)}, p=0.5, rng=Seed(7))
add("dropout", "a third", {"x": normal(3, 5, 7)}, p=0.3, rng=Seed(11))
add("dropout", "all", {"x": normal(5, 7)}, p=1.0, rng=Seed(7))
add("dropout", "none", {"x": normal(5, 7)}, p=0.0, rng=Seed(7))
add("dropout", "inference", {"x": normal(5, 7)}, p=0.5, training=False)
add("dropout", "one value", {"x": normal(1)}, p=0.2, rng=Seed(3))
add("dropout", "empty", {"x": normal(0, 7)}, p=0.5, rng=Seed(7))
add("dropout", "no columns", {"x": normal(7, 0)}, p=0.5, rng=Seed(7), not_in_torch=NOTHING_TO_SUM)
add("dropout", "large", {"x": normal(67, 1031)}, p=0.1, rng=Seed(7), large=True)

add("embedding", "sequence", {"tokens": integers(11, 3, 5), "weight": normal(11, 7)})
add("embedding", "many repeats", {"tokens": integers(2, 123), "weight": normal(5, 3)})
add("embedding", "one token", {"tokens": integers(3), "weight": normal(3, 5)})
add("embedding", "one row", {"tokens": integers(1, 5), "weight": normal(1, 1)})
add(
    "embedding",
    "padding",
    {"tokens": integers(4, 2, 9), "weight": normal(4, 5)},
    padding_idx=2,
    no_differences=_PADDING,
)
add(
    "embedding",
    "padding from the end",
    {"tokens": integers(4, 9), "weight": normal(4, 5)},
    padding_idx=-1,
    no_differences=_PADDING,
)
add("embedding", "empty", {"tokens": integers(4, 0, 3), "weight": normal(4, 5)})
add(
    "embedding",
    "no features",
    {"tokens": integers(4, 2, 3), "weight": normal(4, 0)},
    not_in_torch=NOTHING_TO_SUM,
)
add(
    "embedding",
    "no rows",
    {"tokens": integers(1, 0), "weight": normal(0, 5)},
    not_in_torch=NOTHING_TO_SUM,
)
add("embedding", "large", {"tokens": integers(97, 7, 211), "weight": normal(97, 61)}, large=True)

for _op in ("positional_encoding", "rotary"):
    add(_op, "one step", {"x": normal(2, 1, 6)})
    add(_op, "awkward", {"x": normal(3, 5, 124)})
    add(_op, "heads", {"x": normal(2, 3, 7, 10)})
    add(_op, "one sequence", {"x": normal(11, 4)})
    add(_op, "offset", {"x": normal(2, 5, 6)}, offset=1000)
    add(_op, "before the start", {"x": normal(5, 6)}, offset=-3)
    add(_op, "base", {"x": normal(2, 5, 6)}, base=100.0)
    add(_op, "empty batch", {"x": normal(0, 5, 6)})
    add(_op, "no steps", {"x": normal(2, 0, 6)})
    add(_op, "no features", {"x": normal(2, 3, 0)}, not_in_torch=NOTHING_TO_SUM)
    add(_op, "large", {"x": normal(5, 67, 128)}, large=True)
add("positional_encoding", "odd features", {"x": normal(2, 5, 7)})
add("positional_encoding", "one feature", {"x": normal(2, 5, 1)})
