"""Sample inputs that normalizations share."""

from __future__ import annotations

import numpy as np

from handgrad.ops.samples._makers import extreme, fixed, normal, pick, random_shape
from handgrad.ops.samples._table import NOTHING_TO_SUM, Maker, SampleRow, row


def row_norm(x: Maker, features: int, beta: bool) -> dict[str, Maker]:
    makers = {"x": x, "gamma": normal(features)}
    return makers | ({"beta": normal(features)} if beta else {})


def row_norm_rows(beta: bool) -> tuple[SampleRow, ...]:
    def of(*x_shape: int) -> dict[str, Maker]:
        return row_norm(normal(*x_shape, scale=2.0, offset=1.0), x_shape[-1], beta)

    return (
        row("usual", "usual", of(3, 5)),
        row("square", "usual", of(4, 4)),
        row("one row", "one row", of(1, 7)),
        row("one vector", "one row", of(7)),
        row("prime sizes", "prime sizes", of(7, 11)),
        row("no rows", "empty", of(0, 5)),
        row("sequences", "broadcast", of(2, 3, 5)),
        row("eps", "option", of(3, 5), eps=0.5),
        row("no eps", "option", of(3, 5), eps=0.0),
        row("one feature", "option", of(5, 1), eps=0.1),
        row("one row of zeros", "extreme values", row_norm(one_row(0.0), 4, beta)),
        row("one constant row", "extreme values", row_norm(one_row(7.0), 4, beta)),
        row("large offset", "extreme values", row_norm(normal(3, 5, offset=1e4), 5, beta)),
        row("large and small values", "extreme values", row_norm(extreme(3, 5), 5, beta)),
    )


def one_row(value: float) -> Maker:
    """Three rows, the one in the middle with this value everywhere."""
    return fixed([[1, -2, 3, 5], [value, value, value, value], [2, 2, -1, 0]])


def random_row_norm(rng: np.random.Generator, beta: bool) -> SampleRow:
    x_shape = random_shape(rng, 1, 3)
    x = normal(*x_shape, scale=pick(rng, 0.3, 1.0, 3.0), offset=pick(rng, 0.0, 1.0, -5.0))
    eps = pick(rng, 1e-5, 1e-3, 0.5)
    return row("random", "usual", row_norm(x, x_shape[-1], beta), eps=eps)


def awkward(beta: bool) -> tuple[SampleRow, ...]:
    def of(*x_shape: int) -> dict[str, Maker]:
        return row_norm(normal(*x_shape, scale=2.0, offset=1.0), x_shape[-1], beta)

    return (
        row("awkward", "prime sizes", of(5, 123)),
        row("primes", "prime sizes", of(17, 29)),
        row("no steps", "empty", of(3, 0, 5), not_in_torch=NOTHING_TO_SUM),
        row("large", "usual", of(211, 257), large=True),
    )
