"""Sample inputs that linear and dense share."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import extreme, fixed, normal, pick, random_shape, random_sizes
from handgrad.ops.samples._table import NOTHING_TO_SUM, Maker, SampleRow, row


def affine(*x_shape: int, out: int, bias: bool = True) -> dict[str, Maker]:
    makers = {"x": normal(*x_shape), "weight": normal(out, x_shape[-1])}
    return makers | ({"bias": normal(out)} if bias else {})


AFFINE: Final = (
    row("usual", "usual", affine(3, 4, out=2)),
    row("square", "usual", affine(4, 4, out=4)),
    row("one row", "one row", affine(1, 5, out=3)),
    row("one vector", "one row", affine(5, out=3)),
    row("prime sizes", "prime sizes", affine(7, 11, out=5)),
    row("no rows", "empty", affine(0, 4, out=3)),
    row("sequences", "broadcast", affine(2, 3, 4, out=5)),
    row("no bias", "option", affine(3, 4, out=2, bias=False)),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(3, 5), "weight": extreme(4, 5), "bias": extreme(4)},
    ),
)

AFFINE_SMALL: Final = {
    "x": fixed([[1, 2, -1], [0, 3, 1]]),
    "weight": fixed([[1, 0, 2], [-1, 1, 1]]),
    "bias": fixed([2, -2]),
}


def random_affine(rng: np.random.Generator) -> dict[str, Maker]:
    (out,) = random_sizes(rng, 1)
    return affine(*random_shape(rng, 1, 3), out=out, bias=pick(rng, True, True, False))


def awkward(*more: SampleRow, **large: Any) -> tuple[SampleRow, ...]:
    """Rows of linear and dense; `large` are settings of the large one."""

    def of(*x_shape: int, out: int, bias: bool = True) -> dict[str, Maker]:
        makers = affine(*x_shape, out=out, bias=bias)
        return makers | {"weight": normal(out, x_shape[-1], scale=0.5)}

    return (
        row("one by one", "one row", of(1, 1, out=1)),
        row("awkward", "prime sizes", of(5, 123, out=3)),
        row("primes", "prime sizes", of(17, 29, out=37)),
        row("one long row", "one row", of(1, 31, out=123)),
        *(
            row(label, "empty", makers, not_in_torch=NOTHING_TO_SUM)
            for label, makers in (
                ("no outputs", of(4, 5, out=0)),
                ("no inputs", of(4, 0, out=3)),
                ("no inputs, no bias", of(2, 3, 0, out=3, bias=False)),
                ("nothing at all", of(0, 0, out=0)),
            )
        ),
        row("large", "usual", of(211, 300, out=129), **large, large=True),
        *more,
    )
