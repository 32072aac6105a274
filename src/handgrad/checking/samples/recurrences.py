"""Recurrent networks: rnn, leaky_rnn, lstm, gru. Two or three steps show all that there is."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from handgrad.checking.samples.makers import between, extreme, fixed, normal, pick, uniform
from handgrad.checking.samples.table import Maker, OpSamples, Row, row
from handgrad.ops.rnn import NONLINEARITIES

_GATES: Final = {"rnn": 1, "lstm": 4, "gru": 3}


def sequences(
    batch: int,
    steps: int,
    features: int,
    hidden: int,
    *,
    gates: int,
    projection: int | None = None,
    bias: bool = True,
    states: bool = True,
    lengths: Maker | None = None,
) -> dict[str, Maker]:
    """x, the weights of rnn (1 gate), gru (3) or lstm (4), and initial states."""
    rows, size = gates * hidden, projection or hidden
    makers = {
        "x": normal(batch, steps, features),
        "weight_ih": normal(rows, features, scale=0.5),
        "weight_hh": normal(rows, size, scale=0.5),
    }
    if bias:
        makers |= {"bias_ih": normal(rows), "bias_hh": normal(rows)}
    if projection:
        makers["weight_hr"] = normal(projection, hidden)
    if states:
        makers["h0"] = normal(batch, size)
    if states and gates == 4:
        makers["c0"] = normal(batch, hidden)
    return makers if lengths is None else makers | {"lengths": lengths}


def _whole(values: list[int]) -> Maker:
    return fixed(values, int)


def _rows(gates: int) -> tuple[Row, ...]:
    def of(*sizes: int, lengths: list[int] | None = None, **rest: bool) -> dict[str, Maker]:
        whole = None if lengths is None else _whole(lengths)
        return sequences(*sizes, gates=gates, lengths=whole, **rest)

    rows = 2 * gates
    large = {
        "x": extreme(2, 2, 3),
        "weight_ih": extreme(rows, 3),
        "weight_hh": extreme(rows, 2),
        "bias_ih": extreme(rows),
        "bias_hh": extreme(rows),
    }
    return (
        row("usual", "usual", of(2, 3, 4, 5)),
        row("square", "usual", of(2, 2, 2, 2)),
        row("one sequence", "one row", of(1, 2, 3, 2)),
        row("one step", "one row", of(3, 1, 2, 4)),
        row("prime sizes", "prime sizes", of(3, 2, 5, 7)),
        row("no sequences", "empty", of(0, 2, 3, 4)),
        row("reverse", "option", of(2, 3, 4, 5), reverse=True),
        row("no states", "option", of(2, 2, 3, 2, states=False)),
        row("no bias", "option", of(2, 2, 3, 2, bias=False)),
        row("weights only", "option", of(2, 2, 3, 2, bias=False, states=False)),
        row("lengths", "masked rows", of(3, 4, 2, 5, lengths=[4, 1, 2]), smooth=True),
        row(
            "lengths of 0, reverse",
            "masked rows",
            of(3, 4, 5, 2, lengths=[2, 0, 4]),
            smooth=True,
            reverse=True,
        ),
        row("large and small values", "extreme values", large),
    )


_RNN: Final = (
    *_rows(1),
    row("relu", "option", sequences(2, 2, 3, 4, gates=1), nonlinearity="relu"),
)

_LSTM: Final = (
    *_rows(4),
    row("projection", "option", sequences(2, 3, 4, 5, gates=4, projection=3)),
    row(
        "projection, lengths",
        "masked rows",
        sequences(3, 3, 2, 3, gates=4, projection=2, lengths=_whole([1, 3, 0])),
        smooth=True,
    ),
    row(
        "projection alone",
        "option",
        sequences(2, 2, 3, 3, gates=4, projection=1, bias=False, states=False),
    ),
)


def _random(op: str, rng: np.random.Generator, **options: Any) -> Row:
    batch, steps, features = between(rng, 1, 4), between(rng, 1, 5), between(rng, 1, 5)
    hidden = between(rng, 1, 6)
    lengths = rng.integers(0, steps + 1, batch).tolist()
    makers = sequences(
        batch,
        steps,
        features,
        hidden,
        gates=_GATES[op],
        projection=between(rng, 1, hidden) if op == "lstm" and rng.random() < 0.4 else None,
        bias=pick(rng, True, True, False),
        states=pick(rng, True, True, False),
        lengths=pick(rng, None, _whole(lengths)),
    )
    return row("random", "usual", makers, reverse=pick(rng, False, True), **options)


def _random_rnn(rng: np.random.Generator) -> Row:
    return _random("rnn", rng, nonlinearity=pick(rng, *NONLINEARITIES))


def _random_lstm(rng: np.random.Generator) -> Row:
    return _random("lstm", rng)


def _random_gru(rng: np.random.Generator) -> Row:
    return _random("gru", rng)


def _leaky(
    batch: int,
    steps: int,
    features: int,
    hidden: int,
    *,
    bias: bool = True,
    states: bool = True,
    rates: bool = False,
    lengths: list[int] | None = None,
) -> dict[str, Maker]:
    whole = None if lengths is None else _whole(lengths)
    made = sequences(
        batch, steps, features, hidden, gates=1, bias=bias, states=states, lengths=whole
    )
    made["alpha"] = uniform(hidden)
    wanted = ("x", "weight_ih", "bias_ih", "h0", *(("alpha",) if rates else ()), "lengths")
    return {name: made[name] for name in wanted if name in made}


_LEAKY: Final = (
    row("usual", "usual", _leaky(2, 3, 3, 4), alpha=0.7),
    row("square", "usual", _leaky(3, 3, 3, 3), alpha=0.4),
    row("one sequence", "one row", _leaky(1, 3, 2, 4), alpha=0.7),
    row("one step", "one row", _leaky(3, 1, 2, 4), alpha=0.7),
    row("prime sizes", "prime sizes", _leaky(3, 5, 2, 7), alpha=0.7),
    row("no sequences", "empty", _leaky(0, 3, 2, 4), alpha=0.7),
    row("reverse", "option", _leaky(2, 3, 3, 4), alpha=0.7, reverse=True),
    row("a rate per unit", "option", _leaky(2, 3, 3, 4, rates=True)),
    row("no memory", "option", _leaky(2, 3, 3, 4), alpha=0.0),
    row("memory only", "option", _leaky(2, 3, 3, 4), alpha=1.0),
    row("no states", "option", _leaky(2, 3, 3, 4, states=False), alpha=0.7),
    row("no bias", "option", _leaky(2, 3, 3, 4, bias=False), alpha=0.7),
    row("lengths", "masked rows", _leaky(3, 4, 2, 3, lengths=[4, 1, 3]), smooth=True, alpha=0.7),
    row(
        "lengths of 0, reverse",
        "masked rows",
        _leaky(3, 4, 2, 3, rates=True, lengths=[2, 0, 4]),
        smooth=True,
        reverse=True,
    ),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(2, 3, 3), "weight_ih": extreme(4, 3), "bias_ih": extreme(4)},
        alpha=0.7,
    ),
)


def _random_leaky(rng: np.random.Generator) -> Row:
    batch, steps = between(rng, 1, 4), between(rng, 1, 6)
    rates = pick(rng, True, False)
    makers = _leaky(
        batch,
        steps,
        between(rng, 1, 5),
        between(rng, 1, 6),
        bias=pick(rng, True, True, False),
        states=pick(rng, True, True, False),
        rates=rates,
        lengths=pick(rng, None, rng.integers(0, steps + 1, batch).tolist()),
    )
    options: dict[str, Any] = {} if rates else {"alpha": float(rng.uniform())}
    return row("random", "usual", makers, reverse=pick(rng, False, True), **options)


# The small examples: one sequence of two steps and two hidden units.

_RNN_SMALL: Final = {
    "x": fixed([[[1, 0], [-1, 2]]]),
    "weight_ih": fixed([[1, -1], [0, 1]]),
    "weight_hh": fixed([[0, 1], [-1, 1]]),
    "bias_ih": fixed([0, -1]),
    "bias_hh": fixed([-1, 1]),
    "h0": fixed([[1, 0]]),
}
_LEAKY_SMALL: Final = {name: _RNN_SMALL[name] for name in ("x", "weight_ih", "bias_ih", "h0")}
_GRU_SMALL: Final = {
    "x": fixed([[[1], [-1]]]),
    "weight_ih": fixed([[1], [0], [-1], [1], [2], [-1]]),
    "weight_hh": fixed([[1, 0], [0, -1], [0, 1], [1, 0], [1, 1], [-1, 0]]),
    "bias_ih": fixed([0, 1, -1, 0, 0, 1]),
    "bias_hh": fixed([1, 0, 0, -1, 1, 0]),
    "h0": fixed([[1, -1]]),
}
_LSTM_SMALL: Final = {
    "x": fixed([[[1], [-1]]]),
    "weight_ih": fixed([[1], [0], [-1], [1], [2], [-1], [0], [1]]),
    "weight_hh": fixed([[1, 0], [0, -1], [0, 1], [1, 0], [1, 1], [-1, 0], [0, 1], [1, -1]]),
    "bias_ih": fixed([0, 1, 1, 0, 0, 1, -1, 0]),
    "bias_hh": fixed([1, 0, 0, 1, -1, 0, 0, 1]),
    "h0": fixed([[1, -1]]),
    "c0": fixed([[2, 1]]),
}


def _small_cotangent(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return np.array([[[1.0, 2.0], [3.0, -1.0]]]), np.array([[2.0, -2.0]])


def _small_cotangent_of_lstm(
    rng: np.random.Generator,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    dy, dh_n = _small_cotangent(rng)
    return dy, (dh_n, np.array([[1.0, -1.0]]))


_WEIGHTS: Final = ("x", "weight_ih", "weight_hh", "bias_ih", "bias_hh")

TABLE: Final = {
    "rnn": OpSamples(
        (*_WEIGHTS, "h0"),
        _RNN,
        row("small", "usual", _RNN_SMALL),
        _small_cotangent,
        _random_rnn,
    ),
    "leaky_rnn": OpSamples(
        ("x", "weight_ih", "bias_ih", "h0"),
        _LEAKY,
        row("small", "usual", _LEAKY_SMALL, alpha=0.5),
        _small_cotangent,
        _random_leaky,
    ),
    "lstm": OpSamples(
        (*_WEIGHTS, "weight_hr", "h0", "c0"),
        _LSTM,
        row("small", "usual", _LSTM_SMALL),
        _small_cotangent_of_lstm,
        _random_lstm,
    ),
    "gru": OpSamples(
        (*_WEIGHTS, "h0"),
        _rows(3),
        row("small", "usual", _GRU_SMALL),
        _small_cotangent,
        _random_gru,
    ),
}
