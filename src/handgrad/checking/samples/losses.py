"""Losses: cross_entropy, squared_error, binary_cross_entropy."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.checking.samples.makers import (
    extreme,
    fixed,
    labels,
    normal,
    pick,
    probabilities,
    random_shape,
    uniform,
    with_minus_infinity,
)
from handgrad.checking.samples.table import Maker, OpSamples, Row, row
from handgrad.ops import binary_cross_entropy, cross_entropy, squared_error


def _scored(*x_shape: int, weighted: bool = False, target: Maker | None = None) -> dict[str, Maker]:
    """Scores (N, C, ...), class indices unless another target is given, perhaps class weights."""
    batch, classes, *places = x_shape
    makers = {"x": normal(*x_shape), "target": target or labels(classes, batch, *places)}
    return makers | ({"weight": uniform(classes, low=0.2, high=2.0)} if weighted else {})


_SOME_IGNORED: Final = fixed([0, -100, 2, -100, 3], int)

_CROSS_ENTROPY: Final = (
    row("usual", "usual", _scored(3, 5)),
    row("square", "usual", _scored(4, 4)),
    row("images", "usual", _scored(2, 3, 4, 5)),
    row("one row", "one row", _scored(1, 7)),
    row("no batch", "one row", {"x": normal(5), "target": labels(5)}),
    row("one class", "one row", _scored(3, 1)),
    row("prime sizes", "prime sizes", _scored(7, 11)),
    row("no rows", "empty", _scored(0, 5)),
    row("sum", "option", _scored(3, 5), reduction="sum"),
    row("none", "option", _scored(3, 5), reduction="none"),
    row("none of images", "option", _scored(2, 3, 4, 5, weighted=True), reduction="none"),
    row("weights", "option", _scored(5, 4, weighted=True)),
    row("smoothing", "option", _scored(3, 5), label_smoothing=0.1),
    row("smoothing alone", "option", _scored(3, 5), label_smoothing=1.0),
    row("weights and smoothing", "option", _scored(5, 4, weighted=True), label_smoothing=0.1),
    row("probabilities", "option", _scored(3, 5, target=probabilities(3, 5, axis=1))),
    row(
        "probabilities without a batch",
        "option",
        {"x": normal(5), "target": probabilities(5, axis=0)},
    ),
    row(
        "probabilities, weights and smoothing",
        "option",
        _scored(2, 4, 3, weighted=True, target=probabilities(2, 4, 3, axis=1)),
        label_smoothing=0.2,
    ),
    row(
        "a class ignored",
        "masked rows",
        _scored(5, 4, target=fixed([0, 3, 2, 3, 1], int)),
        smooth=True,
        ignore_index=3,
    ),
    row("some ignored", "masked rows", _scored(5, 4, target=_SOME_IGNORED), smooth=True),
    row(
        "some ignored, weights and smoothing",
        "masked rows",
        _scored(5, 4, weighted=True, target=_SOME_IGNORED),
        smooth=True,
        label_smoothing=0.1,
    ),
    row(
        "some ignored, none",
        "masked rows",
        _scored(5, 4, target=_SOME_IGNORED),
        smooth=True,
        reduction="none",
    ),
    row("all ignored", "masked rows", _scored(3, 4, target=fixed([-100, -100, -100], int))),
    row(
        "impossible classes",
        "masked rows",
        {
            "x": with_minus_infinity([[0, 0, 1], [1, 0, 0]]),
            "target": fixed([0, 1], int),
        },
    ),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(5, 7), "target": labels(7, 5)},
    ),
)

_CROSS_ENTROPY_SMALL: Final = row(
    "small", "usual", {"x": fixed([[1, 2, 3], [0, 0, 0]]), "target": fixed([2, 0], int)}
)


def _random_cross_entropy(rng: np.random.Generator) -> Row:
    x_shape = random_shape(rng, 2, 4)
    batch, classes, *places = x_shape
    target = pick(
        rng,
        labels(classes, batch, *places),
        labels(classes, batch, *places, ignored=-100),
        probabilities(*x_shape, axis=1),
    )
    return row(
        "random",
        "usual",
        _scored(*x_shape, weighted=pick(rng, True, False), target=target),
        label_smoothing=pick(rng, 0.0, 0.1, 0.3),
        reduction=pick(rng, *cross_entropy.REDUCTIONS),
    )


def _compared(*x_shape: int) -> dict[str, Maker]:
    return {"x": normal(*x_shape), "target": normal(*x_shape)}


_SQUARED_ERROR: Final = (
    row("usual", "usual", _compared(3, 5)),
    row("square", "usual", _compared(4, 4)),
    row("four axes", "usual", _compared(2, 3, 4, 5)),
    row("one row", "one row", _compared(1, 7)),
    row("one value", "one row", _compared()),
    row("prime sizes", "prime sizes", _compared(7, 11)),
    row("no rows", "empty", _compared(0, 5)),
    *(
        row(reduction, "option", _compared(3, 5), reduction=reduction)
        for reduction in squared_error.REDUCTIONS[1:]
    ),
    row("right everywhere", "extreme values", {"x": fixed([1, 2]), "target": fixed([1, 2])}),
    row("large and small values", "extreme values", {"x": extreme(3, 5), "target": extreme(3, 5)}),
)

_SQUARED_ERROR_SMALL: Final = row(
    "small", "usual", {"x": fixed([[2, 1], [3, 5]]), "target": fixed([[1, 3], [0, 1]])}
)


def _random_squared_error(rng: np.random.Generator) -> Row:
    reduction = pick(rng, *squared_error.REDUCTIONS)
    return row("random", "usual", _compared(*random_shape(rng, 0, 4)), reduction=reduction)


def _yes_or_no(*x_shape: int) -> dict[str, Maker]:
    return {"x": normal(*x_shape), "target": uniform(*x_shape)}


_BINARY_CROSS_ENTROPY: Final = (
    row("usual", "usual", _yes_or_no(3, 5)),
    row("square", "usual", _yes_or_no(4, 4)),
    row("certain targets", "usual", {"x": normal(2, 3), "target": fixed([[0, 1, 1], [1, 0, 0]])}),
    row("one row", "one row", _yes_or_no(1, 7)),
    row("one value", "one row", _yes_or_no()),
    row("prime sizes", "prime sizes", _yes_or_no(7, 11)),
    row("no rows", "empty", _yes_or_no(0, 5)),
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

_BINARY_CROSS_ENTROPY_SMALL: Final = row(
    "small", "usual", {"x": fixed([[0, 1], [-1, 2]]), "target": fixed([[1, 0], [1, 1]])}
)


def _random_binary_cross_entropy(rng: np.random.Generator) -> Row:
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


# A loss has one cotangent; these cancel what the mean divides by.
TABLE: Final = {
    "cross_entropy": OpSamples(
        ("x",), _CROSS_ENTROPY, _CROSS_ENTROPY_SMALL, fixed(2), _random_cross_entropy
    ),
    "squared_error": OpSamples(
        ("x",), _SQUARED_ERROR, _SQUARED_ERROR_SMALL, fixed(2), _random_squared_error
    ),
    "binary_cross_entropy": OpSamples(
        ("x",),
        _BINARY_CROSS_ENTROPY,
        _BINARY_CROSS_ENTROPY_SMALL,
        fixed(4),
        _random_binary_cross_entropy,
    ),
}
