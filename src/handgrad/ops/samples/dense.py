"""Sample inputs of `ops.dense`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.gelu import APPROXIMATIONS
from handgrad.ops.samples._affine import AFFINE, AFFINE_SMALL, affine, awkward, random_affine
from handgrad.ops.samples._makers import extreme, fixed, normal, pick
from handgrad.ops.samples._table import NOTHING_TO_SUM, OpSamples, SampleRow, row
from handgrad.ops.samples._torch import activated, as_input

_ROWS: Final = (
    *AFFINE,
    *(
        row(activation, "option", affine(3, 4, out=5), activation=activation)
        for activation in ACTIVATIONS[1:]
    ),
    row("steep leak", "option", affine(3, 4, out=5), activation="leaky_relu", negative_slope=0.3),
    row("tanh form", "option", affine(3, 4, out=5), activation="gelu", approximate="tanh"),
    row("relu without bias", "option", affine(3, 4, out=5, bias=False), activation="relu"),
    row("tanh of sequences", "broadcast", affine(2, 3, 4, out=5), activation="tanh"),
    row("gelu of no rows", "empty", affine(0, 4, out=3), activation="gelu"),
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


def _random(rng: np.random.Generator) -> SampleRow:
    return row(
        "random",
        "usual",
        random_affine(rng),
        activation=pick(rng, *ACTIVATIONS),
        negative_slope=pick(rng, 0.01, 0.3),
        approximate=pick(rng, *APPROXIMATIONS),
    )


SAMPLES: Final = OpSamples(
    gradients=("x", "weight", "bias"),
    rows=_ROWS,
    awkward=awkward(
        row("relu of one row", "one row", affine(1, 5, out=3, bias=False), activation="relu"),
        *(
            row(
                f"{activation} {label}",
                "empty",
                makers,
                activation=activation,
                not_in_torch=NOTHING_TO_SUM,
            )
            for activation in ("relu", "gelu")
            for label, makers in (
                ("no outputs", affine(4, 5, out=0)),
                ("no inputs", affine(4, 0, out=3)),
            )
        ),
        activation="gelu",
    ),
    small=row("small", "usual", AFFINE_SMALL, activation="relu"),
    small_cotangent=fixed([[1, 2], [3, -1]]),
    random=_random,
    torch=lambda F, arrays, options: activated(F, F.linear(**as_input(arrays)), options),
)
