"""Recurrent layers: ONNX's own operators, and loops for projections and leaky units.

ONNX lays time first, (T, N, D), and orders gates as i, o, f, c and z, r, h. Runtimes take the
weights of its operators as constants only, so that they stand in the file in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.layers import GRU, LSTM, RNN, LeakyRNN
from handgrad.layers.recurrent import Recurrent
from handgrad.onnx.graph import Graph, Value

#: Our blocks of rows in the order of ONNX, by its operator.
GATES: Final[Mapping[str, tuple[int, ...]]] = {
    "LSTM": (0, 3, 1, 2),
    "GRU": (1, 0, 2),
    "RNN": (0,),
}


def kind_of(layer: Recurrent) -> str | None:
    """The operator of ONNX that computes the layer; None where there is none."""
    if isinstance(layer, LSTM):
        return None if layer.proj_size else "LSTM"
    return {GRU: "GRU", RNN: "RNN"}.get(type(layer))


def arrays_of(layer: Recurrent, kind: str, number: int) -> tuple[Array, Array, Array]:
    """W (directions, gates · H, D), R (directions, gates · H, H), B (directions, 2 gates · H)."""

    def ordered(name: str, direction: int) -> Array:
        suffix = f"_l{number}_reverse" if direction else f"_l{number}"
        array = getattr(layer, name + suffix, None)
        if array is None:  # a bias that the layer has not
            array = np.zeros(
                layer.gates * layer.hidden_size, getattr(layer, f"weight_ih{suffix}").dtype
            )
        blocks = np.split(array, layer.gates)
        return np.concatenate([blocks[i] for i in GATES[kind]])

    each = range(layer.directions)
    weight_ih = np.stack([ordered("weight_ih", i) for i in each])
    weight_hh = np.stack([ordered("weight_hh", i) for i in each])
    biases = [np.concatenate([ordered("bias_ih", i), ordered("bias_hh", i)]) for i in each]
    return weight_ih, weight_hh, np.stack(biases)


def run(g: Graph, layer: Recurrent, x: Value, lengths: Value | None = None) -> tuple[Value, Value]:
    """y (N, T, directions · size) of x (N, T, D), and the last layer's h (directions, N, size)."""
    with g.within(layer):
        active = None
        if lengths is not None:
            active = g.op("Transpose", g.within_lengths(x, lengths), perm=[1, 0])
            active = g.op("Unsqueeze", active, g.ints(2))
        y, h = g.op("Transpose", x, perm=[1, 0, 2]), ""
        kind = kind_of(layer)
        for number in range(layer.num_layers):
            initial = _initial(g, layer, number, y)
            if kind is not None:
                y, h = _by_operator(g, layer, kind, number, y, lengths, initial)
            else:
                y, h = _by_loop(g, layer, number, y, active, initial)
        return g.op("Transpose", y, perm=[1, 0, 2]), h


def _initial(g: Graph, layer: Recurrent, number: int, x: Value) -> list[Value | None]:
    """The learned states of one layer, (directions, N, size) each; None starts from 0."""
    found: list[Value | None] = []
    for name in layer.states:
        learned = getattr(layer, f"{name}0")
        if learned is None:
            found.append(None)
            continue
        first = number * layer.directions
        rows = g.ints(*range(first, first + layer.directions))
        each = g.op("Gather", g.constant(learned), rows, axis=0)
        shape = g.op("Concat", g.ints(1), g.size(x, 1), g.ints(1), axis=0)
        found.append(g.op("Expand", g.op("Unsqueeze", each, g.ints(1)), shape))
    return found


def _by_operator(
    g: Graph,
    layer: Recurrent,
    kind: str,
    number: int,
    x: Value,
    lengths: Value | None,
    initial: Sequence[Value | None],
) -> tuple[Value, Value]:
    arrays = zip("WRB", arrays_of(layer, kind, number), strict=True)
    given = [g.named(f"{name}_l{number}", array) for name, array in arrays]
    ends = None if lengths is None else g.op("Cast", lengths, to=6)  # int32
    settings: dict[str, Any] = {
        "hidden_size": layer.hidden_size,
        "direction": "bidirectional" if layer.directions == 2 else "forward",
    }
    if kind == "GRU":
        settings["linear_before_reset"] = 1
    if isinstance(layer, RNN):
        f = {"tanh": "Tanh", "relu": "Relu"}[layer.nonlinearity]
        settings["activations"] = [f] * layer.directions
    outputs = 1 + len(layer.states)
    y, h, *_ = g.ops(kind, outputs, x, *given, ends, *initial, **settings)
    by_step = g.op("Transpose", y, perm=[0, 2, 1, 3])
    return g.op("Reshape", by_step, g.ints(0, 0, -1)), h


def _by_loop(
    g: Graph,
    layer: Recurrent,
    number: int,
    x: Value,
    active: Value | None,
    initial: Sequence[Value | None],
) -> tuple[Value, Value]:
    """Both directions by a Scan; where a sequence has no step its state stays as it is."""
    ys, hs = [], []
    sizes = (layer.output_size, layer.hidden_size)
    step = _leaky_step if isinstance(layer, LeakyRNN) else _projected_step
    counted = None if active is None else g.op("Cast", active, to=g.kind)
    for direction in range(layer.directions):
        suffix = f"_l{number}_reverse" if direction else f"_l{number}"
        of: dict[str, Any] = {name: getattr(layer, name + suffix, None) for name in layer.weights}
        states = []
        for size, each in zip(sizes, initial, strict=False):
            if each is None:
                shape = g.op("Concat", g.size(x, 1), g.ints(size), axis=0)
                states.append(g.op("Expand", g.number(0.0), shape))
            else:
                states.append(g.op("Gather", each, g.index(direction), axis=0))
        a = g.linear(x, of["weight_ih"], of["bias_ih"])
        if of.get("bias_hh") is not None:
            a = g.op("Add", a, g.constant(of["bias_hh"]))
        if isinstance(layer, LeakyRNN):
            rest = g.op("Sub", g.number(1.0), g.constant(layer.alpha))
            a = g.op("Mul", g.op("Tanh", a), rest)
        items = [a] if counted is None else [a, counted]
        turned: dict[str, Value] = {
            name: g.turned(of[name]) for name in ("weight_hh", "weight_hr") if name in of
        }
        body = _body(layer, turned, step)
        finals, (y,) = g.scan(body, states, items, reverse=direction == 1)
        ys.append(y)
        hs.append(g.op("Unsqueeze", finals[0], g.ints(0)))
    y = ys[0] if len(ys) == 1 else g.op("Concat", *ys, axis=-1)
    return y, hs[0] if len(hs) == 1 else g.op("Concat", *hs, axis=0)


Step = Callable[[Graph, Any, Mapping[str, Value], Value, Sequence[Value]], list[Value]]


def _body(layer: Any, turned: Mapping[str, Value], step: Step) -> Callable[..., Any]:
    def body(
        g: Graph, states: Sequence[Value], items: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        new = step(g, layer, turned, items[0], states)
        if len(items) == 1:
            return new, [new[0]]
        active = g.op("Greater", items[1], g.number(0.0))
        kept = [g.op("Where", active, now, old) for now, old in zip(new, states, strict=True)]
        return kept, [g.masked(new[0], active)]

    return body


def _leaky_step(
    g: Graph, layer: LeakyRNN, turned: Mapping[str, Value], a: Value, states: Sequence[Value]
) -> list[Value]:
    """h_t = α h_{t−1} + a_t, where a_t is (1 − α) tanh(W_ih x_t + b_ih)."""
    return [g.op("Add", g.op("Mul", g.constant(layer.alpha), states[0]), a)]


def _projected_step(
    g: Graph, layer: LSTM, turned: Mapping[str, Value], a: Value, states: Sequence[Value]
) -> list[Value]:
    """The equations of `hg.ops.lstm`, a_t being the inputs' part with both biases."""
    h, c = states
    i, f, n, o = g.ops("Split", 4, g.op("Add", a, g.op("MatMul", h, turned["weight_hh"])), axis=-1)
    kept = g.op("Mul", g.op("Sigmoid", f), c)
    c = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", n)))
    m = g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", c))
    return [g.op("MatMul", m, turned["weight_hr"]), c]


def recurrent(g: Graph, layer: Recurrent, x: Value) -> Value:
    """y alone, as in a container."""
    return run(g, layer, x)[0]


RULES: Final[Mapping[type, Callable[..., Value]]] = dict.fromkeys(
    (GRU, LSTM, RNN, LeakyRNN), recurrent
)
