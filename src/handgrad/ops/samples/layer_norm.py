"""Sample inputs of `ops.layer_norm`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._makers import fixed
from handgrad.ops.samples._row_norm import awkward, random_row_norm, row_norm_rows
from handgrad.ops.samples._table import OpSamples, SampleRow, row


def _random(rng: np.random.Generator) -> SampleRow:
    return random_row_norm(rng, beta=True)


_SMALL: Final = row(
    "small",
    "usual",
    {
        "x": fixed([[0, 6, 6, 8], [1, 3, 1, 3]]),
        "gamma": fixed([1, 2, 3, 1]),
        "beta": fixed([0, 1, 0, -1]),
    },
    eps=0.0,
)


SAMPLES: Final = OpSamples(
    gradients=("x", "gamma", "beta"),
    rows=row_norm_rows(beta=True),
    awkward=awkward(beta=True),
    small=_SMALL,
    small_cotangent=fixed([[1, 2, -1, 3], [2, 0, 1, -2]]),
    random=_random,
    torch=lambda F, arrays, options: F.layer_norm(
        arrays["x"], arrays["gamma"].shape, arrays["gamma"], arrays["beta"], **options
    ),
)
