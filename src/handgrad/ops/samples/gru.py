"""Sample inputs of `ops.gru`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._makers import fixed
from handgrad.ops.samples._recurrent import (
    WEIGHTS,
    awkward,
    random_sequences,
    recurrent,
    recurrent_rows,
    small_cotangent,
)
from handgrad.ops.samples._table import OpSamples, SampleRow, row


def _random(rng: np.random.Generator) -> SampleRow:
    return random_sequences(3, rng)


_GRU_SMALL: Final = {
    "x": fixed([[[1], [-1]]]),
    "weight_ih": fixed([[1], [0], [-1], [1], [2], [-1]]),
    "weight_hh": fixed([[1, 0], [0, -1], [0, 1], [1, 0], [1, 1], [-1, 0]]),
    "bias_ih": fixed([0, 1, -1, 0, 0, 1]),
    "bias_hh": fixed([1, 0, 0, -1, 1, 0]),
    "h0": fixed([[1, -1]]),
}


SAMPLES: Final = OpSamples(
    gradients=(*WEIGHTS, "h0"),
    rows=recurrent_rows(3),
    awkward=awkward(3),
    small=row("small", "usual", _GRU_SMALL),
    small_cotangent=small_cotangent,
    random=_random,
    torch=recurrent("GRU"),
    saturates=True,
)
