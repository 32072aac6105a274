"""Sample inputs of `ops.softmax`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._makers import (
    between,
    extreme,
    fixed,
    normal,
    random_shape,
    uniform,
    with_minus_infinity,
)
from handgrad.ops.samples._table import NOTHING_TO_SUM, OpSamples, SampleRow, row

_NOTHING_LEFT: Final = "PyTorch's softmax of −∞ alone is NaN; here it is 0"

_ROWS: Final = (
    row("usual", "usual", {"x": normal(3, 5)}),
    row("square", "usual", {"x": normal(4, 4)}),
    row("one row", "one row", {"x": normal(1, 7)}),
    row("one vector", "one row", {"x": normal(7)}),
    row("one class", "one row", {"x": normal(3, 1)}),
    row("prime sizes", "prime sizes", {"x": normal(7, 11)}),
    row("no rows", "empty", {"x": normal(0, 5)}),
    row("several matrices", "usual", {"x": normal(2, 3, 4)}),
    row("first axis", "option", {"x": normal(5, 3)}, axis=0),
    row("middle axis", "option", {"x": normal(2, 3, 4)}, axis=1),
    row("axis from the end", "option", {"x": normal(2, 3, 4)}, axis=-2),
    row(
        "some scores masked",
        "masked rows",
        {"x": with_minus_infinity([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]])},
    ),
    row(
        "a row masked everywhere",
        "masked rows",
        {"x": with_minus_infinity([[0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0]])},
        not_in_torch=_NOTHING_LEFT,
    ),
    row(
        "a column masked everywhere",
        "masked rows",
        {"x": with_minus_infinity([[0, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]])},
        axis=0,
        not_in_torch=_NOTHING_LEFT,
    ),
    row("large and small values", "extreme values", {"x": extreme(3, 5)}),
)

_SMALL: Final = row("small", "usual", {"x": fixed([[1, 2, 3], [0, 0, 0]])})


def _random(rng: np.random.Generator) -> SampleRow:
    x_shape = random_shape(rng, 1, 3)
    axis = between(rng, -len(x_shape), len(x_shape) - 1)
    return row("random", "usual", {"x": normal(*x_shape, scale=2.0)}, axis=axis)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row("awkward", "prime sizes", {"x": normal(5, 123)}),
        row("one long row", "one row", {"x": normal(1, 17)}),
        row("spread scores", "usual", {"x": uniform(3, 11, low=-300.0, high=300.0)}),
        row(
            "nothing beside the axis",
            "empty",
            {"x": normal(5, 3, 0)},
            axis=1,
            not_in_torch=NOTHING_TO_SUM,
        ),
        row("large", "usual", {"x": normal(301, 211)}, large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[1, 2, -1], [3, 0, 6]]),
    random=_random,
    torch=lambda F, arrays, options: F.softmax(arrays["x"], dim=options.get("axis", -1)),
)
