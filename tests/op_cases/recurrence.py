"""Recurrent layers over whole sequences."""

from __future__ import annotations

from handgrad.checking.samples.recurrences import sequences
from tests.op_cases.case import add
from tests.op_cases.makers import Maker, fixed, normal, uniform

_EMPTY = "PyTorch refuses a layer without features or units"


def _sequences(
    *sizes: int, gates: int = 1, projection: int | None = None, **settings: bool
) -> dict[str, Maker]:
    """As in the samples of the checker, a projection made smaller."""
    makers = sequences(*sizes, gates=gates, projection=projection, **settings)
    if projection:
        makers["weight_hr"] = normal(projection, sizes[-1], scale=0.7)
    return makers


def _leaky_sequences(
    batch: int, steps: int, features: int, hidden: int, *, bias: bool = True, states: bool = True
) -> dict[str, Maker]:
    makers = _sequences(batch, steps, features, hidden, bias=bias, states=states)
    return {name: makers[name] for name in ("x", "weight_ih", "bias_ih", "h0") if name in makers}


def _ragged(makers: dict[str, Maker], *lengths: int) -> dict[str, Maker]:
    return makers | {"lengths": fixed(lengths)}


for _op, _gates in (("rnn", 1), ("lstm", 4), ("gru", 3)):
    add(_op, "one unit", _sequences(1, 1, 1, 1, gates=_gates))
    add(_op, "awkward", _sequences(3, 5, 13, 7, gates=_gates))
    add(_op, "one sequence", _sequences(1, 7, 3, 5, gates=_gates))
    add(_op, "one step", _sequences(5, 1, 3, 4, gates=_gates))
    add(_op, "no states", _sequences(2, 3, 4, 5, gates=_gates, states=False))
    add(_op, "no bias", _sequences(2, 3, 4, 5, gates=_gates, bias=False))
    add(_op, "weights only", _sequences(2, 3, 4, 3, gates=_gates, bias=False, states=False))
    add(_op, "reverse", _sequences(2, 4, 3, 5, gates=_gates), reverse=True)
    add(_op, "lengths", _ragged(_sequences(4, 5, 3, 4, gates=_gates), 5, 2, 1, 4))
    add(_op, "all lengths full", _ragged(_sequences(2, 3, 3, 4, gates=_gates), 3, 3))
    add(_op, "lengths of 0", _ragged(_sequences(3, 4, 3, 2, gates=_gates), 0, 4, 0))
    add(_op, "nothing but padding", _ragged(_sequences(2, 3, 3, 2, gates=_gates), 0, 0))
    add(
        _op,
        "lengths without states",
        _ragged(_sequences(3, 4, 2, 3, gates=_gates, states=False), 1, 4, 3),
    )
    add(
        _op,
        "reverse lengths",
        _ragged(_sequences(4, 5, 3, 4, gates=_gates), 3, 5, 0, 2),
        reverse=True,
    )
    add(_op, "no features", _sequences(2, 3, 0, 5, gates=_gates), not_in_torch=_EMPTY)
    add(_op, "no units", _sequences(2, 3, 4, 0, gates=_gates), not_in_torch=_EMPTY)
    add(
        _op,
        "nothing but lengths",
        _ragged(_sequences(2, 3, 0, 0, gates=_gates), 1, 3),
        not_in_torch=_EMPTY,
    )
    add(_op, "empty batch", _sequences(0, 3, 4, 5, gates=_gates))
    add(_op, "large", _ragged(_sequences(17, 23, 31, 29, gates=_gates), *range(7, 24)), large=True)
add("rnn", "relu", _sequences(3, 5, 4, 6), nonlinearity="relu")
add(
    "rnn",
    "relu reverse lengths",
    _ragged(_sequences(3, 5, 4, 6), 5, 3, 1),
    nonlinearity="relu",
    reverse=True,
)
add("lstm", "projection", _sequences(3, 4, 5, 7, gates=4, projection=3))
add("lstm", "projection to one", _sequences(2, 3, 4, 5, gates=4, projection=1))
add("lstm", "projection alone", _sequences(2, 3, 4, 5, gates=4, projection=2, states=False))
add(
    "lstm",
    "projection without bias",
    _sequences(2, 3, 4, 5, gates=4, projection=2, bias=False),
)
add(
    "lstm",
    "projection reverse lengths",
    _ragged(_sequences(4, 5, 3, 4, gates=4, projection=3), 2, 5, 0, 4),
    reverse=True,
)

add(
    "lstm",
    "projection of no units",
    _sequences(2, 3, 4, 0, gates=4, projection=3),
    not_in_torch=_EMPTY,
)

for _label, _sizes in (("one unit", (1, 1, 1, 1)), ("awkward", (3, 5, 13, 7))):
    add("leaky_rnn", _label, _leaky_sequences(*_sizes), alpha=0.7)
add("leaky_rnn", "one step", _leaky_sequences(5, 1, 3, 4), alpha=0.5)
add(
    "leaky_rnn",
    "a rate per unit",
    _leaky_sequences(3, 4, 2, 5) | {"alpha": uniform(5)},
)
add("leaky_rnn", "no memory", _leaky_sequences(2, 3, 4, 5), alpha=0.0)
add("leaky_rnn", "memory only", _leaky_sequences(2, 3, 4, 5), alpha=1.0)
add("leaky_rnn", "no states", _leaky_sequences(2, 3, 4, 5, states=False), alpha=0.3)
add("leaky_rnn", "no bias", _leaky_sequences(2, 3, 4, 5, bias=False), alpha=0.3)
add("leaky_rnn", "lengths", _ragged(_leaky_sequences(4, 5, 3, 4), 5, 2, 0, 4), alpha=0.6)
add(
    "leaky_rnn",
    "reverse lengths",
    _ragged(_leaky_sequences(3, 5, 3, 4), 3, 5, 1) | {"alpha": uniform(4)},
    reverse=True,
)
add("leaky_rnn", "no features", _leaky_sequences(2, 3, 0, 5), alpha=0.7, not_in_torch=_EMPTY)
add("leaky_rnn", "no units", _leaky_sequences(2, 3, 4, 0), alpha=0.7, not_in_torch=_EMPTY)
add("leaky_rnn", "empty batch", _leaky_sequences(0, 3, 4, 5), alpha=0.7)
add(
    "leaky_rnn",
    "large",
    _ragged(_leaky_sequences(17, 23, 31, 29), *range(7, 24)),
    alpha=0.9,
    large=True,
)
