"""Sample inputs of `ops.rms_norm`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._makers import fixed
from handgrad.ops.samples._row_norm import awkward, random_row_norm, row_norm_rows
from handgrad.ops.samples._table import OpSamples, SampleRow, row


def _random(rng: np.random.Generator) -> SampleRow:
    return random_row_norm(rng, beta=False)


_SMALL: Final = row(
    "small", "usual", {"x": fixed([[1, 5, 7], [1, -1, 5]]), "gamma": fixed([1, 2, 3])}, eps=0.0
)


SAMPLES: Final = OpSamples(
    gradients=("x", "gamma"),
    rows=row_norm_rows(beta=False),
    awkward=awkward(beta=False),
    small=_SMALL,
    small_cotangent=fixed([[1, 2, -1], [3, 0, 1]]),
    random=_random,
    torch=lambda F, arrays, options: F.rms_norm(
        arrays["x"], arrays["gamma"].shape, arrays["gamma"], options.get("eps", 1e-5)
    ),
)
