"""Functions of one value: relu, leaky_relu, sigmoid, tanh, gelu, silu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad.checking.samples.makers import (
    away_from_zero,
    extreme,
    fixed,
    normal,
    pick,
    random_shape,
    uniform,
)
from handgrad.checking.samples.table import Maker, OpSamples, Row, row
from handgrad.ops.gelu import APPROXIMATIONS

ShapedMaker = Callable[..., Maker]


def _every_shape(values: ShapedMaker) -> tuple[Row, ...]:
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


_KINKED: Final = (
    *_every_shape(away_from_zero),
    row(
        "one row switched off",
        "masked rows",
        {"x": fixed([[1.5, -0.5, 2.5], [-1.0, -2.0, -0.3], [-0.7, 0.4, 3.0]])},
        smooth=True,
    ),
    row("at the kink", "extreme values", {"x": fixed([[-1, 0, 2], [0, 3, -0.0]])}),
)

_LEAKY_RELU: Final = (
    *_KINKED,
    row("steep", "option", {"x": away_from_zero(3, 5)}, negative_slope=0.3),
    row("slope below zero", "option", {"x": away_from_zero(3, 5)}, negative_slope=-0.5),
    row("slope of zero", "option", {"x": away_from_zero(3, 5)}, negative_slope=0.0),
)

_SMOOTH: Final = (
    *_every_shape(normal),
    row("wide", "usual", {"x": uniform(5, 7, low=-6.0, high=6.0)}),
)

_GELU: Final = (
    *_SMOOTH,
    row("tanh form", "option", {"x": normal(3, 5)}, approximate="tanh"),
    row("tanh form, wide", "option", {"x": uniform(5, 7, low=-6.0, high=6.0)}, approximate="tanh"),
    row("tanh form, extreme", "extreme values", {"x": extreme(5, 7)}, approximate="tanh"),
)


def _random_of(
    values: ShapedMaker, **choices: tuple[Any, ...]
) -> Callable[[np.random.Generator], Row]:
    def random(rng: np.random.Generator) -> Row:
        options = {name: pick(rng, *allowed) for name, allowed in choices.items()}
        return row("random", "usual", {"x": values(*random_shape(rng, 0, 4))}, **options)

    return random


_SMALL_KINKED: Final = {"x": fixed([[2, -4, 6], [-2, 4, -6]])}
_SMALL_SMOOTH: Final = row("small", "usual", {"x": fixed([[0, 1, -1], [2, -2, 3]])})
_SMALL_COTANGENT: Final = fixed([[1, 2, -1], [3, -2, 4]])

TABLE: Final = {
    "relu": OpSamples(
        ("x",),
        _KINKED,
        row("small", "usual", _SMALL_KINKED),
        _SMALL_COTANGENT,
        _random_of(away_from_zero),
    ),
    "leaky_relu": OpSamples(
        ("x",),
        _LEAKY_RELU,
        row("small", "usual", _SMALL_KINKED, negative_slope=0.5),
        _SMALL_COTANGENT,
        _random_of(away_from_zero, negative_slope=(0.01, 0.3, -0.5)),
    ),
    "sigmoid": OpSamples(("x",), _SMOOTH, _SMALL_SMOOTH, _SMALL_COTANGENT, _random_of(normal)),
    "tanh": OpSamples(("x",), _SMOOTH, _SMALL_SMOOTH, _SMALL_COTANGENT, _random_of(normal)),
    "gelu": OpSamples(
        ("x",),
        _GELU,
        _SMALL_SMOOTH,
        _SMALL_COTANGENT,
        _random_of(normal, approximate=APPROXIMATIONS),
    ),
    "silu": OpSamples(("x",), _SMOOTH, _SMALL_SMOOTH, _SMALL_COTANGENT, _random_of(normal)),
}
