"""The rules of recurrent layers, which go on step by step in running order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.layers import GRU, LSTM, RNN, LeakyRNN, StepPooling
from handgrad.layers.recurrent import Recurrent
from handgrad.limits.gates import closed_gate, gated, logistic, open_gate
from handgrad.limits.inputs import InputPosition
from handgrad.limits.program import (
    Build,
    MomentFactor,
    Raw,
    Signal,
    activated,
    bias_of,
    mixed,
    signal,
    total,
)
from handgrad.limits.rules import lower
from handgrad.limits.variables import ONE, Concat, Function, InputVector, LinComb, Variable, Weight
from handgrad.models import SequenceClassifier

#: The vector of zeros, from which states start.
ZERO = mixed()


class States(NamedTuple):
    """The results of a layer on sequences: y at every step, and the last layer's final states."""

    y: list[Variable]
    final: list[Variable]


@lower.register
def _recurrent(layer: Recurrent, x: Raw | Signal, build: Build) -> Signal:
    y = states(layer, x, build).y
    if build.is_ragged:
        name = build.name("y")
        y = [mixed((_is_longer(t), h), name=name, index=(t,)) for t, h in enumerate(y)]
    return signal((len(y),), lambda position: y[position[0]])


@lower.register
def _classifier(layer: SequenceClassifier, x: Raw | Signal, build: Build) -> Signal:
    if layer.pooling not in ("state", "mean"):
        raise ArgumentError(f"limits: pooling is {layer.pooling!r}; allowed: 'state' or 'mean'")
    with build.child("recurrent"):
        found = states(layer.recurrent, x, build)
    if layer.pooling == "mean":
        r = _mean(found.y, build)
    else:
        count = len(found.final)
        shares = tuple((1.0 / count, each) for each in found.final)
        r = Concat("", shares) if count > 1 else found.final[0]
    with build.child("head"):
        return lower(layer.head, signal((), lambda position: r), build)


@lower.register
def _step_pooling(layer: StepPooling, x: Raw | Signal, build: Build) -> Signal:
    if layer.pooling != "mean":
        raise ArgumentError(f"limits: pooling is {layer.pooling!r}; allowed: 'mean'")
    r = _mean(list(build.read(x, "last").variables), build)
    return signal((), lambda position: r)


def _mean(ys: Sequence[Variable], build: Build) -> Variable:
    """The mean of the steps that count."""
    terms = ((_share_of(t, len(ys), build), y) for t, y in enumerate(ys))
    return mixed(*terms, name=build.name("mean"), index=())


def _share_of(t: int, steps: int, build: Build) -> Any:
    if not build.is_ragged:
        return 1.0 / steps
    return MomentFactor(
        lambda alone: (t < alone.sides[0].lengths) / alone.sides[0].lengths, "share"
    )


def states(layer: Recurrent, x: Raw | Signal, build: Build) -> States:
    """Every layer and direction of a stack of recurrent layers."""
    if isinstance(x, Raw) and x.is_tokens:
        raise ArgumentError("limits: x is tokens; allowed before an Embedding only")
    steps = x.shape[0] if isinstance(x, Raw) else len(x.variables)
    y: list[Variable] | None = None if isinstance(x, Raw) else list(x.variables)
    name = x.name if isinstance(x, Raw) else ""
    final: list[Variable] = []
    for number in range(layer.num_layers):
        outputs, final = [], []
        for direction in range(layer.directions):
            suffix = f"_l{number}" + ("_reverse" if direction else "")
            if y is None:
                backwards = direction == 1
                places = [InputPosition("last", (t,), backwards) for t in range(steps)]
                inputs: list[Variable] = [InputVector(name, p, index=p.position) for p in places]
            else:
                inputs = _reversed(y, build, build.name(f"x{suffix}")) if direction else y
            cell = _Cell(layer, suffix, inputs[0], build)
            running = list(cell.run(inputs))
            final.append(_at_end(running, build, build.name(f"last{suffix}")))
            in_time = _reversed(running, build, build.name(f"y{suffix}")) if direction else running
            outputs.append(in_time)
        y = [_side_by_side(each) for each in zip(*outputs, strict=True)]
    assert y is not None
    return States(y, final)


def _side_by_side(outputs: tuple[Variable, ...]) -> Variable:
    share = 1.0 / len(outputs)
    if len(outputs) == 1:
        return outputs[0]
    return Concat("", tuple((share, each) for each in outputs), index=outputs[0].index)


def _at_end(running: list[Variable], build: Build, name: str) -> Variable:
    """The state after the last step that counts."""
    if not build.is_ragged:
        return running[-1]
    terms = ((_is_length(t + 1), h) for t, h in enumerate(running))
    return mixed(*terms, name=name, index=())


def _reversed(variables: list[Variable], build: Build, name: str) -> list[Variable]:
    """The steps of each sequence from its own end."""
    if not build.is_ragged:
        return variables[::-1]
    steps = len(variables)
    found = []
    for s in range(steps):
        terms = ((_is_length(t + s + 1), variables[t]) for t in range(steps - s))
        found.append(mixed(*terms, name=name, index=(s,)))
    return found


def _where(holds: Callable[[Array], Array]) -> MomentFactor:
    """1 for examples whose lengths meet a condition, 0 for others."""
    return MomentFactor(lambda alone: holds(alone.sides[0].lengths).astype(np.float64), "chosen")


def _is_longer(steps: int) -> MomentFactor:
    """1 for examples of more steps: y is 0 after the end."""
    return _where(lambda lengths: lengths > steps)


def _is_length(length: int) -> MomentFactor:
    """1 for examples of this length."""
    return _where(lambda lengths: lengths == length)


class _Cell:
    """The weights of one layer in one direction, gate by gate, and its step."""

    def __init__(self, layer: Recurrent, suffix: str, first: Variable, build: Build) -> None:
        self.layer = layer
        self.build = build
        bound = 1.0 / np.sqrt(layer.hidden_size)
        self._draw = partial(initializers.uniform, bound=bound)
        self._suffix = suffix

    def gate(self, name: str, gate: int) -> Weight | None:
        """The rows of a parameter that belong to a gate; None where the layer has none."""
        full = name + self._suffix
        parameters = self.layer.parameters
        if full not in parameters:
            return None
        layer, shape = self.layer, parameters[full].shape
        if name.startswith("bias"):
            whole = self.build.bias(layer, full, self._draw, shape)
        else:
            whole = self.build.weight(layer, full, self._draw, shape, shape[1])
        return whole if layer.gates == 1 else self.build.rows(whole, gate)

    def sum_of(self, gate: int, *given: tuple[str, Variable]) -> Variable:
        """W h for each named matrix and its vector, and the named biases."""
        terms = []
        for name, vector in given:
            weight = self.gate(name, gate)
            if weight is None:
                continue
            if name.startswith("bias"):
                terms.append(bias_of(weight))
            elif vector is not ZERO:
                terms.append(self.build.product(weight, vector))
        return total(*terms) if terms else ZERO

    def preactivation(self, gate: int, x: Variable, h: Variable) -> Variable:
        return self.sum_of(
            gate, ("weight_ih", x), ("weight_hh", h), ("bias_ih", ONE), ("bias_hh", ONE)
        )

    def run(self, inputs: list[Variable]) -> Any:
        """The states in running order."""
        h, c = ZERO, ZERO
        for t, x in enumerate(inputs):
            match self.layer:
                case LSTM():
                    h, c = self._lstm(t, x, h, c)
                case GRU():
                    h = self._gru(t, x, h)
                case LeakyRNN():
                    h = self._leaky(x, h)
                case RNN():
                    h = activated(self.layer.nonlinearity, self.preactivation(0, x, h))
                case _:
                    raise ArgumentError(f"limits: {type(self.layer).__name__} has no rule")
            yield h

    def _label(self, name: str) -> str:
        return self.build.name(name + self._suffix)

    def _leaky(self, x: Variable, h: Variable) -> Variable:
        assert isinstance(self.layer, LeakyRNN)
        rates = np.unique(self.layer.alpha)
        if len(rates) != 1:
            raise ArgumentError("limits: LeakyRNN has several alpha; allowed: one for all units")
        alpha = float(rates[0])
        new = activated("tanh", self.preactivation(0, x, ZERO))
        terms = [(1.0 - alpha, new), *([] if h is ZERO else [(alpha, h)])]
        return LinComb(self._label("h"), tuple(terms), index=x.index)

    def _gru(self, t: int, x: Variable, h: Variable) -> Variable:
        r, z = (self.preactivation(gate, x, h) for gate in (0, 1))
        a = self.sum_of(2, ("weight_ih", x), ("bias_ih", ONE))
        u = self.sum_of(2, ("weight_hh", h), ("bias_hh", ONE))
        reset = gated("u", (open_gate(r), u), text="σ({0}) ⊙ {1}", index=(t,))
        n = activated("tanh", LinComb(self._label("a"), ((1.0, a), (1.0, reset)), index=(t,)))
        text = "(1 − σ({0})) ⊙ {1} + σ({0}) ⊙ {2}"
        return gated("h", (closed_gate(z), n), (open_gate(z), h), text=text, index=(t,))

    def _lstm(self, t: int, x: Variable, h: Variable, c: Variable) -> tuple[Variable, Variable]:
        assert isinstance(self.layer, LSTM)
        i, g, o = (self.preactivation(gate, x, h) for gate in (0, 2, 3))
        if self.layer.forget_bias is None:
            f = self.preactivation(1, x, h)
        else:
            drawn = self.sum_of(1, ("weight_ih", x), ("weight_hh", h))
            f = mixed((1.0, drawn), (self.layer.forget_bias, ONE))
        cell = "σ({1}) ⊙ {3} + σ({0}) ⊙ tanh({2})"
        c = Function("c", (i, f, g, c), _cell_value, _cell_slopes, cell, index=(t,))
        output = "σ({0}) ⊙ tanh({1})"
        h = Function("h", (o, c), _output_value, _output_slopes, output, index=(t,))
        projection = self.gate("weight_hr", 0)
        return (h if projection is None else self.build.product(projection, h)), c


def _cell_value(i: Array, f: Array, g: Array, c: Array) -> Array:
    return logistic(f) * c + logistic(i) * np.tanh(g)


def _cell_slopes(i: Array, f: Array, g: Array, c: Array) -> tuple[Array, ...]:
    i, f, g = logistic(i), logistic(f), np.tanh(g)
    return i * (1.0 - i) * g, f * (1.0 - f) * c, i * (1.0 - g * g), f


def _output_value(o: Array, c: Array) -> Array:
    return logistic(o) * np.tanh(c)


def _output_slopes(o: Array, c: Array) -> tuple[Array, ...]:
    o, t = logistic(o), np.tanh(c)
    return o * (1.0 - o) * t, o * (1.0 - t * t)
