"""Sample inputs that gated linear units share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import extreme, fixed, normal, pick, random_shape, uniform
from handgrad.ops.samples._table import NOTHING_TO_SUM, Maker, SampleRow, row

ROWS: Final = (
    row("usual", "usual", {"x": normal(3, 10)}),
    row("square", "usual", {"x": normal(4, 4)}),
    row("three axes", "usual", {"x": normal(2, 3, 8)}),
    row("one row", "one row", {"x": normal(1, 6)}),
    row("one vector", "one row", {"x": normal(2)}),
    row("prime sizes", "prime sizes", {"x": normal(7, 22)}),
    row("no rows", "empty", {"x": normal(0, 6)}),
    row("wide", "usual", {"x": uniform(5, 6, low=-6.0, high=6.0)}),
    row("large and small values", "extreme values", {"x": extreme(5, 8)}),
)

AWKWARD: Final = (
    row("awkward", "prime sizes", {"x": normal(5, 246)}),
    row("around vectors", "usual", {"x": normal(3, 34)}),
    row("no columns", "empty", {"x": normal(7, 0)}, not_in_torch=NOTHING_TO_SUM),
    row("wider", "usual", {"x": uniform(3, 82, low=-30.0, high=30.0)}),
    row("large", "usual", {"x": normal(67, 2062)}, large=True),
)

SMALL: Final = row("small", "usual", {"x": fixed([[0, 1, 2, -1], [2, -2, 1, 3]])})

SMALL_COTANGENT: Final = fixed([[1, 2], [3, -2]])


def random_of(**choices: tuple[Any, ...]) -> Callable[[np.random.Generator], SampleRow]:
    def random(rng: np.random.Generator) -> SampleRow:
        *batch, half = random_shape(rng, 1, 3)
        x: Maker = normal(*batch, 2 * half)
        options = {name: pick(rng, *allowed) for name, allowed in choices.items()}
        return row("random", "usual", {"x": x}, **options)

    return random
