"""Sample inputs that functions of one value share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import (
    away_from_zero,
    extreme,
    fixed,
    normal,
    pick,
    random_shape,
    uniform,
)
from handgrad.ops.samples._table import NOTHING_TO_SUM, Maker, OpSamples, SampleRow, row

ShapedMaker = Callable[..., Maker]


def every_shape(values: ShapedMaker) -> tuple[SampleRow, ...]:
    return (
        row("usual", "usual", {"x": values(3, 5)}),
        row("square", "usual", {"x": values(4, 4)}),
        row("four axes", "usual", {"x": values(2, 3, 4, 5)}),
        row("one row", "one row", {"x": values(1, 7)}),
        row("one value", "one row", {"x": values(1)}),
        row("no axes", "one row", {"x": values()}),
        row("prime sizes", "prime sizes", {"x": values(7, 11)}),
        row("no rows", "empty", {"x": values(0, 7)}),
        row("large and small values", "extreme values", {"x": extreme(5, 7)}),
    )


KINKED: Final = (
    *every_shape(away_from_zero),
    row(
        "one row switched off",
        "masked rows",
        {"x": fixed([[1.5, -0.5, 2.5], [-1.0, -2.0, -0.3], [-0.7, 0.4, 3.0]])},
        smooth=True,
    ),
    row("at the kink", "extreme values", {"x": fixed([[-1, 0, 2], [0, 3, -0.0]])}),
)

SMOOTH: Final = (
    *every_shape(normal),
    row("wide", "usual", {"x": uniform(5, 7, low=-6.0, high=6.0)}),
)


def random_of(
    values: ShapedMaker, **choices: tuple[Any, ...]
) -> Callable[[np.random.Generator], SampleRow]:
    def random(rng: np.random.Generator) -> SampleRow:
        options = {name: pick(rng, *allowed) for name, allowed in choices.items()}
        return row("random", "usual", {"x": values(*random_shape(rng, 0, 4))}, **options)

    return random


SMALL_KINKED: Final = {"x": fixed([[2, -4, 6], [-2, 4, -6]])}

SMALL_SMOOTH: Final = row("small", "usual", {"x": fixed([[0, 1, -1], [2, -2, 3]])})

SMALL_COTANGENT: Final = fixed([[1, 2, -1], [3, -2, 4]])


def awkward(*more: SampleRow) -> tuple[SampleRow, ...]:
    return (
        row("awkward", "prime sizes", {"x": normal(5, 123)}),
        row("no columns", "empty", {"x": normal(7, 0)}, not_in_torch=NOTHING_TO_SUM),
        row("wider", "usual", {"x": uniform(3, 41, low=-30.0, high=30.0)}),
        row("large", "usual", {"x": normal(67, 1031)}, large=True),
        *more,
    )


def smooth(torch: Callable[[Any, Any], Any]) -> OpSamples:
    """Those of a smooth function without settings; torch: (torch.nn.functional, x) -> y."""
    return OpSamples(
        gradients=("x",),
        rows=SMOOTH,
        awkward=awkward(),
        small=SMALL_SMOOTH,
        small_cotangent=SMALL_COTANGENT,
        random=random_of(normal),
        torch=lambda F, arrays, options: torch(F, arrays["x"]),
    )
