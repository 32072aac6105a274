"""Sample inputs of `ops.lstm`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import fixed, normal
from handgrad.ops.samples._recurrent import (
    NO_SIZE,
    WEIGHTS,
    awkward,
    random_sequences,
    recurrent,
    recurrent_rows,
    sequences,
    small_cotangent,
    whole,
)
from handgrad.ops.samples._table import Maker, OpSamples, SampleRow, row

_ROWS: Final = (
    *recurrent_rows(4),
    row("projection", "option", sequences(2, 3, 4, 5, gates=4, projection=3)),
    row(
        "projection, lengths",
        "masked rows",
        sequences(3, 3, 2, 3, gates=4, projection=2, lengths=whole([1, 3, 0])),
        smooth=True,
    ),
    row(
        "projection alone",
        "option",
        sequences(2, 2, 3, 3, gates=4, projection=1, bias=(), states=False),
    ),
)


def _random(rng: np.random.Generator) -> SampleRow:
    return random_sequences(4, rng)


_LSTM_SMALL: Final = {
    "x": fixed([[[1], [-1]]]),
    "weight_ih": fixed([[1], [0], [-1], [1], [2], [-1], [0], [1]]),
    "weight_hh": fixed([[1, 0], [0, -1], [0, 1], [1, 0], [1, 1], [-1, 0], [0, 1], [1, -1]]),
    "bias_ih": fixed([0, 1, 1, 0, 0, 1, -1, 0]),
    "bias_hh": fixed([1, 0, 0, 1, -1, 0, 0, 1]),
    "h0": fixed([[1, -1]]),
    "c0": fixed([[2, 1]]),
}


def _cotangent(
    rng: np.random.Generator,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    dy, dh_n = small_cotangent(rng)
    return dy, (dh_n, np.array([[1.0, -1.0]]))


def _projected(*sizes: int, projection: int, **rest: Any) -> dict[str, Maker]:
    makers = sequences(*sizes, gates=4, projection=projection, **rest)
    return makers | {"weight_hr": normal(projection, sizes[-1], scale=0.7)}


SAMPLES: Final = OpSamples(
    gradients=(*WEIGHTS, "weight_hr", "h0", "c0"),
    rows=_ROWS,
    awkward=awkward(
        4,
        row("projection to one", "option", _projected(2, 3, 4, 5, projection=1)),
        row(
            "projection without states",
            "option",
            _projected(2, 3, 4, 5, projection=2, states=False),
        ),
        row("projection without bias", "option", _projected(2, 3, 4, 5, projection=2, bias=())),
        row(
            "projection, lengths, reverse",
            "masked rows",
            _projected(4, 5, 3, 4, projection=3, lengths=whole([2, 5, 0, 4])),
            smooth=True,
            reverse=True,
        ),
        row(
            "projection of no units",
            "empty",
            _projected(2, 3, 4, 0, projection=3),
            not_in_torch=NO_SIZE,
        ),
    ),
    small=row("small", "usual", _LSTM_SMALL),
    small_cotangent=_cotangent,
    random=_random,
    torch=recurrent("LSTM"),
    saturates=True,
)
