"""Sample inputs of `ops.cross_entropy`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops import cross_entropy
from handgrad.ops.samples._makers import (
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
from handgrad.ops.samples._table import NO_MEAN, Maker, OpSamples, SampleRow, row
from handgrad.ops.samples._torch import as_input


def _scored(*x_shape: int, weighted: bool = False, target: Maker | None = None) -> dict[str, Maker]:
    """Scores (N, C, ...), class indices unless another target is given, perhaps class weights."""
    batch, classes, *positions = x_shape
    makers = {"x": normal(*x_shape), "target": target or labels(classes, batch, *positions)}
    return makers | ({"weight": uniform(classes, low=0.2, high=2.0)} if weighted else {})


_SOME_IGNORED: Final = fixed([0, -100, 2, -100, 3], int)

_ROWS: Final = (
    row("usual", "usual", _scored(3, 5)),
    row("square", "usual", _scored(4, 4)),
    row("images", "usual", _scored(2, 3, 4, 5)),
    row("one row", "one row", _scored(1, 7)),
    row("no batch", "one row", {"x": normal(5), "target": labels(5)}),
    row("one class", "one row", _scored(3, 1)),
    row("prime sizes", "prime sizes", _scored(7, 11)),
    row("no rows", "empty", _scored(0, 5), not_in_torch=NO_MEAN),
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
    row(
        "all ignored",
        "masked rows",
        _scored(3, 4, target=fixed([-100, -100, -100], int)),
        not_in_torch=NO_MEAN,
    ),
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

_SMALL: Final = row(
    "small", "usual", {"x": fixed([[1, 2, 3], [0, 0, 0]]), "target": fixed([2, 0], int)}
)


def _random(rng: np.random.Generator) -> SampleRow:
    x_shape = random_shape(rng, 2, 4)
    batch, classes, *positions = x_shape
    target = pick(
        rng,
        labels(classes, batch, *positions),
        labels(classes, batch, *positions, ignored=-100),
        probabilities(*x_shape, axis=1),
    )
    return row(
        "random",
        "usual",
        _scored(*x_shape, weighted=pick(rng, True, False), target=target),
        label_smoothing=pick(rng, 0.0, 0.1, 0.3),
        reduction=pick(rng, *cross_entropy.REDUCTIONS),
    )


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row("awkward", "prime sizes", _scored(5, 123)),
        row("sequence", "usual", _scored(3, 5, 7)),
        *(
            row(
                f"{reduction} of images, some ignored",
                "masked rows",
                {
                    "x": normal(2, 5, 3, 4),
                    "target": labels(5, 2, 3, 4, ignored=-100),
                    "weight": uniform(5),
                },
                smooth=True,
                reduction=reduction,
                label_smoothing=0.1,
            )
            for reduction in ("sum", "none")
        ),
        row(
            "spread scores",
            "usual",
            {"x": uniform(5, 7, low=-300.0, high=300.0), "target": labels(7, 5)},
        ),
        row("large", "usual", _scored(301, 131), large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed(2),
    random=_random,
    torch=lambda F, arrays, options: F.cross_entropy(**as_input(arrays), **options),
    open_nonfinite=("weight",),
)
