"""Sample inputs of `ops.rnn`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.rnn import NONLINEARITIES
from handgrad.ops.samples._makers import pick
from handgrad.ops.samples._recurrent import (
    RNN_SMALL,
    WEIGHTS,
    awkward,
    random_sequences,
    recurrent,
    recurrent_rows,
    sequences,
    small_cotangent,
    whole,
)
from handgrad.ops.samples._table import OpSamples, SampleRow, row

_ROWS: Final = (
    *recurrent_rows(1),
    row("relu", "option", sequences(2, 2, 3, 4, gates=1), nonlinearity="relu"),
)


def _random(rng: np.random.Generator) -> SampleRow:
    return random_sequences(1, rng, nonlinearity=pick(rng, *NONLINEARITIES))


SAMPLES: Final = OpSamples(
    gradients=(*WEIGHTS, "h0"),
    rows=_ROWS,
    awkward=awkward(
        1,
        row(
            "relu, lengths, reverse",
            "masked rows",
            sequences(3, 5, 4, 6, gates=1, lengths=whole([5, 3, 1])),
            smooth=True,
            nonlinearity="relu",
            reverse=True,
        ),
    ),
    small=row("small", "usual", RNN_SMALL),
    small_cotangent=small_cotangent,
    random=_random,
    torch=recurrent("RNN"),
    saturates=True,
)
