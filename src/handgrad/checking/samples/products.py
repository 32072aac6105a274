"""Matrix products: matmul, linear, dense."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.checking.samples.makers import (
    between,
    extreme,
    fixed,
    normal,
    pick,
    random_shape,
    random_sizes,
)
from handgrad.checking.samples.table import Maker, OpSamples, Row, row
from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.gelu import APPROXIMATIONS

_MATMUL: Final = (
    row("usual", "usual", {"a": normal(3, 4), "b": normal(4, 2)}),
    row("square", "usual", {"a": normal(4, 4), "b": normal(4, 4)}),
    row("one row", "one row", {"a": normal(1, 5), "b": normal(5, 3)}),
    row("one column", "one row", {"a": normal(5, 3), "b": normal(3, 1)}),
    row("prime sizes", "prime sizes", {"a": normal(7, 11), "b": normal(11, 5)}),
    row("no rows", "empty", {"a": normal(0, 4), "b": normal(4, 3)}),
    row("nothing to sum", "empty", {"a": normal(3, 0), "b": normal(0, 2)}),
    row("batch", "usual", {"a": normal(2, 3, 4), "b": normal(2, 4, 5)}),
    row("two batches broadcast", "broadcast", {"a": normal(3, 1, 2, 4), "b": normal(2, 4, 3)}),
    row("vector on the left", "broadcast", {"a": normal(4), "b": normal(2, 4, 3)}),
    row("vector on the right", "broadcast", {"a": normal(5, 4), "b": normal(4)}),
    row("two vectors", "broadcast", {"a": normal(5), "b": normal(5)}),
    row("tiles", "option", {"a": normal(4, 6), "b": normal(6, 4)}, tile=(2, 3)),
    row("uneven tiles", "option", {"a": normal(5, 7), "b": normal(7, 3)}, tile=(2, 3)),
    row("large and small values", "extreme values", {"a": extreme(3, 5), "b": extreme(5, 4)}),
)

_MATMUL_SMALL: Final = row(
    "small", "usual", {"a": fixed([[1, 2, 0], [3, -1, 2]]), "b": fixed([[2, 1], [0, 3], [1, -1]])}
)


def _random_matmul(rng: np.random.Generator) -> Row:
    m, k, n = random_sizes(rng, 3)
    makers = pick(
        rng,
        {"a": normal(m, k), "b": normal(k, n)},
        {"a": normal(2, m, k), "b": normal(2, k, n)},
        {"a": normal(3, 1, m, k), "b": normal(2, k, n)},
    )
    tile = pick(rng, None, (between(rng, 1, 5), between(rng, 1, 5)))
    return row("random", "usual", makers, tile=tile)


def _affine(*x_shape: int, out: int, bias: bool = True) -> dict[str, Maker]:
    makers = {"x": normal(*x_shape), "weight": normal(out, x_shape[-1])}
    return makers | ({"bias": normal(out)} if bias else {})


_AFFINE: Final = (
    row("usual", "usual", _affine(3, 4, out=2)),
    row("square", "usual", _affine(4, 4, out=4)),
    row("one row", "one row", _affine(1, 5, out=3)),
    row("one vector", "one row", _affine(5, out=3)),
    row("prime sizes", "prime sizes", _affine(7, 11, out=5)),
    row("no rows", "empty", _affine(0, 4, out=3)),
    row("sequences", "broadcast", _affine(2, 3, 4, out=5)),
    row("no bias", "option", _affine(3, 4, out=2, bias=False)),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(3, 5), "weight": extreme(4, 5), "bias": extreme(4)},
    ),
)

_DENSE: Final = (
    *_AFFINE,
    *(
        row(activation, "option", _affine(3, 4, out=5), activation=activation)
        for activation in ACTIVATIONS[1:]
    ),
    row("steep leak", "option", _affine(3, 4, out=5), activation="leaky_relu", negative_slope=0.3),
    row("tanh form", "option", _affine(3, 4, out=5), activation="gelu", approximate="tanh"),
    row("relu without bias", "option", _affine(3, 4, out=5, bias=False), activation="relu"),
    row("tanh of sequences", "broadcast", _affine(2, 3, 4, out=5), activation="tanh"),
    row("gelu of no rows", "empty", _affine(0, 4, out=3), activation="gelu"),
    row(
        "relu at its kink",
        "extreme values",
        {"x": normal(3, 4), "weight": fixed(np.zeros((2, 4))), "bias": fixed([0, 0])},
        activation="relu",
    ),
    row(
        "saturated sigmoid",
        "extreme values",
        {"x": extreme(3, 5), "weight": normal(4, 5), "bias": normal(4)},
        activation="sigmoid",
    ),
)

_AFFINE_SMALL: Final = {
    "x": fixed([[1, 2, -1], [0, 3, 1]]),
    "weight": fixed([[1, 0, 2], [-1, 1, 1]]),
    "bias": fixed([2, -2]),
}


def _random_affine(rng: np.random.Generator) -> dict[str, Maker]:
    (out,) = random_sizes(rng, 1)
    return _affine(*random_shape(rng, 1, 3), out=out, bias=pick(rng, True, True, False))


def _random_linear(rng: np.random.Generator) -> Row:
    return row("random", "usual", _random_affine(rng))


def _random_dense(rng: np.random.Generator) -> Row:
    return row(
        "random",
        "usual",
        _random_affine(rng),
        activation=pick(rng, *ACTIVATIONS),
        negative_slope=pick(rng, 0.01, 0.3),
        approximate=pick(rng, *APPROXIMATIONS),
    )


TABLE: Final = {
    "matmul": OpSamples(
        ("a", "b"), _MATMUL, _MATMUL_SMALL, fixed([[1, -1], [2, 3]]), _random_matmul
    ),
    "linear": OpSamples(
        ("x", "weight", "bias"),
        _AFFINE,
        row("small", "usual", _AFFINE_SMALL),
        fixed([[1, 2], [3, -1]]),
        _random_linear,
    ),
    "dense": OpSamples(
        ("x", "weight", "bias"),
        _DENSE,
        row("small", "usual", _AFFINE_SMALL, activation="relu"),
        fixed([[1, 2], [3, -1]]),
        _random_dense,
    ),
}
