"""Sample inputs of `ops.linear`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._affine import AFFINE, AFFINE_SMALL, awkward, random_affine
from handgrad.ops.samples._makers import fixed
from handgrad.ops.samples._table import OpSamples, SampleRow, row
from handgrad.ops.samples._torch import as_input


def _random(rng: np.random.Generator) -> SampleRow:
    return row("random", "usual", random_affine(rng))


SAMPLES: Final = OpSamples(
    gradients=("x", "weight", "bias"),
    rows=AFFINE,
    awkward=awkward(),
    small=row("small", "usual", AFFINE_SMALL),
    small_cotangent=fixed([[1, 2], [3, -1]]),
    random=_random,
    torch=lambda F, arrays, options: F.linear(**as_input(arrays)),
)
