"""Sample inputs of `ops.binary_cross_entropy`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops import binary_cross_entropy
from handgrad.ops.samples._makers import (
    extreme,
    few_values,
    fixed,
    normal,
    pick,
    random_shape,
    uniform,
)
from handgrad.ops.samples._table import NO_MEAN, Maker, OpSamples, SampleRow, row
from handgrad.ops.samples._torch import as_input


def _yes_or_no(*x_shape: int) -> dict[str, Maker]:
    return {"x": normal(*x_shape), "target": uniform(*x_shape)}


_ROWS: Final = (
    row("usual", "usual", _yes_or_no(3, 5)),
    row("square", "usual", _yes_or_no(4, 4)),
    row("certain targets", "usual", {"x": normal(2, 3), "target": fixed([[0, 1, 1], [1, 0, 0]])}),
    row("one row", "one row", _yes_or_no(1, 7)),
    row("one value", "one row", _yes_or_no()),
    row("prime sizes", "prime sizes", _yes_or_no(7, 11)),
    row("no rows", "empty", _yes_or_no(0, 5), not_in_torch=NO_MEAN),
    *(
        row(reduction, "option", _yes_or_no(3, 5), reduction=reduction)
        for reduction in binary_cross_entropy.REDUCTIONS[1:]
    ),
    row("weight", "option", _yes_or_no(3, 5) | {"weight": uniform(3, 5)}),
    row("weight per column", "broadcast", _yes_or_no(3, 5) | {"weight": uniform(5)}),
    row("weight of positives", "broadcast", _yes_or_no(3, 5) | {"pos_weight": uniform(5)}),
    row(
        "both weights",
        "broadcast",
        _yes_or_no(3, 5) | {"weight": uniform(3, 1), "pos_weight": uniform(5)},
        reduction="none",
    ),
    row(
        "a row of weight 0",
        "masked rows",
        _yes_or_no(3, 5) | {"weight": fixed([[1.5], [0], [0.5]])},
        smooth=True,
    ),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(3, 4), "target": fixed([[0, 1, 1, 0], [1, 0, 0.5, 1], [1, 1, 0, 0]])},
    ),
)

_SMALL: Final = row(
    "small", "usual", {"x": fixed([[0, 1], [-1, 2]]), "target": fixed([[1, 0], [1, 1]])}
)


def _random(rng: np.random.Generator) -> SampleRow:
    x_shape = random_shape(rng, 0, 4)
    weights = pick(
        rng,
        {},
        {"weight": uniform(*x_shape)},
        {"pos_weight": uniform(*x_shape[1:], high=3.0)},
        {"weight": uniform(*x_shape[1:]), "pos_weight": uniform(*x_shape[-1:], high=3.0)},
    )
    reduction = pick(rng, *binary_cross_entropy.REDUCTIONS)
    return row("random", "usual", _yes_or_no(*x_shape) | weights, reduction=reduction)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row(
            "weights of rows and columns",
            "broadcast",
            _yes_or_no(5, 7) | {"weight": uniform(5, 1), "pos_weight": uniform(7)},
        ),
        row("one vector of one", "one row", _yes_or_no(1)),
        row(
            "spread logits",
            "usual",
            {"x": uniform(123, low=-300.0, high=300.0), "target": few_values(123, low=0)},
        ),
        row("large", "usual", _yes_or_no(301, 131), large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed(4),
    random=_random,
    torch=lambda F, arrays, options: F.binary_cross_entropy_with_logits(
        **as_input(arrays), **options
    ),
)
