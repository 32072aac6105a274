"""Sample inputs that recurrent ops share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from handgrad.ops.samples._makers import between, extreme, fixed, normal, pick
from handgrad.ops.samples._table import Maker, SampleRow, row

Makers: TypeAlias = dict[str, Maker]
BIASES: Final = ("bias_ih", "bias_hh")
NO_SIZE: Final = "PyTorch refuses a layer without features or units"


def sequences(
    batch: int,
    steps: int,
    features: int,
    hidden: int,
    *,
    gates: int,
    projection: int | None = None,
    bias: Sequence[str] = BIASES,
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
    makers |= dict.fromkeys(bias, normal(rows))
    if projection:
        makers["weight_hr"] = normal(projection, hidden)
    if states:
        makers["h0"] = normal(batch, size)
    if states and gates == 4:
        makers["c0"] = normal(batch, hidden)
    return makers if lengths is None else makers | {"lengths": lengths}


def whole(values: Sequence[int]) -> Maker:
    return fixed(list(values), int)


def recurrent_rows(gates: int) -> tuple[SampleRow, ...]:
    def of(*sizes: int, lengths: Sequence[int] | None = None, **rest: Any) -> Makers:
        given = None if lengths is None else whole(lengths)
        return sequences(*sizes, gates=gates, lengths=given, **rest)

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
        row("no bias", "option", of(2, 2, 3, 2, bias=())),
        row("input bias", "option", of(2, 2, 3, 2, bias=("bias_ih",))),
        row("recurrent bias", "option", of(2, 2, 3, 2, bias=("bias_hh",))),
        row("weights only", "option", of(2, 2, 3, 2, bias=(), states=False)),
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


def random_sequences(gates: int, rng: np.random.Generator, **options: Any) -> SampleRow:
    batch, steps, features = between(rng, 1, 4), between(rng, 1, 5), between(rng, 1, 5)
    hidden = between(rng, 1, 6)
    lengths = rng.integers(0, steps + 1, batch).tolist()
    makers = sequences(
        batch,
        steps,
        features,
        hidden,
        gates=gates,
        projection=between(rng, 1, hidden) if gates == 4 and rng.random() < 0.4 else None,
        bias=pick(rng, BIASES, BIASES, BIASES[:1], BIASES[1:], ()),
        states=pick(rng, True, True, False),
        lengths=pick(rng, None, whole(lengths)),
    )
    return row("random", "usual", makers, reverse=pick(rng, False, True), **options)


RNN_SMALL: Final = {
    "x": fixed([[[1, 0], [-1, 2]]]),
    "weight_ih": fixed([[1, -1], [0, 1]]),
    "weight_hh": fixed([[0, 1], [-1, 1]]),
    "bias_ih": fixed([0, -1]),
    "bias_hh": fixed([-1, 1]),
    "h0": fixed([[1, 0]]),
}


def small_cotangent(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return np.array([[[1.0, 2.0], [3.0, -1.0]]]), np.array([[2.0, -2.0]])


WEIGHTS: Final = ("x", "weight_ih", "weight_hh", "bias_ih", "bias_hh")


def each_alone(
    cell: Callable[[Any, tuple[Any, ...]], tuple[Any, tuple[Any, ...]]],
    arrays: Mapping[str, Any],
    states: tuple[Any, ...],
    options: Mapping[str, Any],
    torch: Any,
) -> Any:
    """`cell(x, states) -> (y, states)` on every sequence alone, cut to its length; then padded."""
    x = arrays["x"]
    lengths = arrays["lengths"].tolist() if "lengths" in arrays else [x.shape[1]] * x.shape[0]
    reverse = options.get("reverse", False)
    ys, finals = [], []
    for n, length in enumerate(lengths):
        own, y = tuple(state[n : n + 1] for state in states), None
        if length > 0:
            sequence = x[n : n + 1, :length]
            y, own = cell(sequence.flip(1) if reverse else sequence, own)
            y = y.flip(1) if reverse else y
        features = states[0].shape[1]
        padding = torch.zeros((1, x.shape[1] - length, features), dtype=x.dtype)
        ys.append(padding if y is None else torch.cat((y, padding), dim=1))
        finals.append(own)
    if not ys:
        return torch.zeros((*x.shape[:2], states[0].shape[1]), dtype=x.dtype), states
    return torch.cat(ys), tuple(torch.cat(parts) for parts in zip(*finals, strict=True))


def recurrent(kind: str) -> Callable[..., Any]:
    """torch.nn.RNN, GRU or LSTM of one layer with the case's weights."""

    def run(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        torch, x, weight_hh = F.torch, arrays["x"], arrays["weight_hh"]
        rows, state_size = weight_hh.shape
        hidden = rows // {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
        settings = {"nonlinearity": options.get("nonlinearity", "tanh")} if kind == "RNN" else {}
        if "weight_hr" in arrays:
            settings["proj_size"] = state_size
        module = getattr(torch.nn, kind)(
            x.shape[2], hidden, batch_first=True, dtype=x.dtype, **settings
        )
        zeros = {name: torch.zeros(rows, dtype=x.dtype) for name in ("bias_ih", "bias_hh")}
        weights = {
            f"{name}_l0": array
            for name, array in (zeros | dict(arrays)).items()
            if name.startswith(("weight", "bias"))
        }
        h0 = arrays.get("h0", torch.zeros((len(x), state_size), dtype=x.dtype))
        c0 = arrays.get("c0", torch.zeros((len(x), hidden), dtype=x.dtype))

        def cell(sequence: Any, states: tuple[Any, ...]) -> Any:
            given = tuple(state[None] for state in states)
            arguments = (sequence, given if kind == "LSTM" else given[0])
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "LSTM with projections is not supported")
                y, final = torch.func.functional_call(module, weights, arguments)
            return y, tuple(state[0] for state in (final if kind == "LSTM" else (final,)))

        states = (h0, c0) if kind == "LSTM" else (h0,)
        y, final = each_alone(cell, arrays, states, options, torch)
        return y, final if kind == "LSTM" else final[0]

    return run


def awkward(gates: int, *more: SampleRow) -> tuple[SampleRow, ...]:
    def of(*sizes: int, lengths: Sequence[int] | None = None, states: bool = True) -> Makers:
        given = None if lengths is None else whole(lengths)
        return sequences(*sizes, gates=gates, lengths=given, states=states)

    return (
        row("one unit", "one row", of(1, 1, 1, 1)),
        row("awkward", "prime sizes", of(3, 5, 13, 7)),
        row("lengths of 0", "masked rows", of(3, 4, 3, 2, lengths=[0, 4, 0]), smooth=True),
        row("all lengths full", "option", of(2, 3, 3, 4, lengths=[3, 3])),
        row("nothing but padding", "masked rows", of(2, 3, 3, 2, lengths=[0, 0]), smooth=True),
        row(
            "lengths without states",
            "masked rows",
            of(3, 4, 2, 3, lengths=[1, 4, 3], states=False),
            smooth=True,
        ),
        row("no features", "empty", of(2, 3, 0, 5), not_in_torch=NO_SIZE),
        row("no units", "empty", of(2, 3, 4, 0), not_in_torch=NO_SIZE),
        row("nothing but lengths", "empty", of(2, 3, 0, 0, lengths=[1, 3]), not_in_torch=NO_SIZE),
        row(
            "large",
            "masked rows",
            of(17, 23, 31, 29, lengths=range(7, 24)),
            smooth=True,
            large=True,
        ),
        *more,
    )
