"""The rules of the layers, one function per kind: each goes on with the vectors of a program."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from handgrad.errors import ArgumentError
from handgrad.geometry.windows import Setting, output_size, per_axis
from handgrad.layers import (
    Activation,
    AvgPool1d,
    AvgPool2d,
    BatchNorm,
    Conv1d,
    Conv2d,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    LastStep,
    LayerNorm,
    LearnedPositions,
    MaxPool1d,
    MaxPool2d,
    PositionalEncoding,
    Residual,
    RMSNorm,
    Sequential,
    Standardize,
)
from handgrad.layers.base import Layer, Shape
from handgrad.limits.inputs import InputPosition
from handgrad.limits.program import (
    Build,
    MomentFactor,
    Raw,
    Signal,
    activated,
    bias_of,
    mixed,
    normalized,
    signal,
    total,
)
from handgrad.limits.variables import (
    Batched,
    Concat,
    Function,
    InputVector,
    MatMul,
    Variable,
    parts_of,
)
from handgrad.ops import batch_norm


@singledispatch
def lower(layer: Layer, x: Raw | Signal, build: Build) -> Signal:
    """The signal behind a layer.

    Raises ArgumentError for a layer that has no limit, or none that is written here.
    """
    raise ArgumentError(
        f"limits: {type(layer).__name__} has no rule; allowed: "
        f"{', '.join(sorted(kind.__name__ for kind in lower.registry if kind is not object))}"
    )


@lower.register
def _sequential(layer: Sequential, x: Raw | Signal, build: Build) -> Signal:
    for name, child in layer.layers.items():
        with build.child(name):
            x = lower(child, x, build)
    return x  # type: ignore[return-value]


@lower.register
def _dropout(layer: Dropout, x: Raw | Signal, build: Build) -> Any:
    return x  # at inference it does nothing


@lower.register
def _flatten(layer: Flatten, x: Raw | Signal, build: Build) -> Any:
    if isinstance(x, Raw):
        if x.is_tokens:
            build.read(x, "last")
        return signal((), lambda position: InputVector(x.name, InputPosition("flat", ())))
    parts = [part for position in x.positions for part in parts_of(x.variables[position])]
    shares = tuple((share / len(x.positions), part) for share, part in parts)
    return signal((), lambda position: Concat("", shares) if len(shares) > 1 else shares[0][1])


@lower.register
def dense(layer: Dense, x: Raw | Signal, build: Build) -> Signal:
    weight = build.weight(layer, "weight", layer.initializer, layer.weight.shape, layer.in_features)
    bias = None if layer.bias is None else bias_of(build.bias(layer))

    def applied(position: tuple[int, ...], h: Variable) -> Variable:
        g = build.product(weight, h)
        return activated(variable=g if bias is None else total(g, bias), **layer.options)

    return build.read(x, "last").each(applied)


@lower.register(Conv1d)
@lower.register(Conv2d)
def _convolution(layer: Conv1d | Conv2d, x: Raw | Signal, build: Build) -> Signal:
    if layer.groups != 1:
        raise ArgumentError(f"limits: groups is {layer.groups}; allowed: 1")
    x = build.read(x, "first")
    offsets = list(np.ndindex(layer.kernel_size))
    columns = layer.in_channels * len(offsets)
    weight = build.weight(layer, "weight", layer.initializer, layer.weight.shape, columns)
    of_offset = [build.columns(weight, i, 1.0 / len(offsets)) for i in range(len(offsets))]
    bias = None if layer.bias is None else bias_of(build.bias(layer))
    size = output_size(
        x.variables.shape, layer.kernel_size, layer.stride, layer.padding, layer.dilation
    )

    def applied(position: tuple[int, ...]) -> Variable:
        read = _read(x, position, layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        terms = (MatMul(weight.name, of_offset[i], h, index=position) for i, h in read)
        g = total(*terms, *([] if bias is None else [bias]))
        return activated(layer.activation, g)

    return signal(size, applied, "first")


def _read(
    x: Signal,
    position: tuple[int, ...],
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
) -> list[tuple[int, Variable]]:
    """What an output position reads of the image: numbers of the kernel's entries, and vectors."""
    found = []
    for number, offset in enumerate(np.ndindex(kernel)):
        settings = zip(position, offset, stride, padding, dilation, strict=True)
        at = tuple(p * s - pad + o * d for p, o, s, pad, d in settings)
        if all(0 <= a < n for a, n in zip(at, x.variables.shape, strict=True)):
            found.append((number, x.variables[at]))
    return found


def _pooled(
    x: Signal,
    settings: tuple[Setting, Setting, Setting, Setting],
    pool: Callable[[tuple[int, ...], list[Variable]], Variable],
) -> Signal:
    """`pool` of the position and the vectors of each window that lie within the image.

    The settings are kernel, stride, padding and dilation.
    """
    kernel, *others = (per_axis(value, x.variables.ndim) for value in settings)

    def at(position: tuple[int, ...]) -> Variable:
        return pool(position, [h for _, h in _read(x, position, kernel, *others)])

    return signal(output_size(x.variables.shape, kernel, *others), at, "first")


@lower.register(AvgPool1d)
@lower.register(AvgPool2d)
def _avg_pool(layer: AvgPool1d | AvgPool2d, x: Raw | Signal, build: Build) -> Signal:
    x = build.read(x, "first")
    kernel = x.variables.shape if isinstance(layer.kernel_size, str) else layer.kernel_size
    stride = kernel if layer.stride is None else layer.stride
    size = int(np.prod(per_axis(kernel, x.variables.ndim)))

    def mean(position: tuple[int, ...], inside: list[Variable]) -> Variable:
        share = 1.0 / (size if layer.count_include_pad else max(len(inside), 1))
        return mixed(*((share, h) for h in inside), name=build.name("mean"), index=position)

    return _pooled(x, (kernel, stride, layer.padding, 1), mean)


@lower.register(MaxPool1d)
@lower.register(MaxPool2d)
def _max_pool(layer: MaxPool1d | MaxPool2d, x: Raw | Signal, build: Build) -> Signal:
    x = build.read(x, "first")

    def largest(*values: Any) -> Any:
        return np.max(np.stack(np.broadcast_arrays(*values)), axis=0)

    def of_the_largest(*values: Any) -> Any:
        stacked = np.stack(np.broadcast_arrays(*values))
        first = np.argmax(stacked, axis=0)
        return tuple((first == i).astype(np.float64) for i in range(len(values)))

    def maximum(position: tuple[int, ...], inside: list[Variable]) -> Variable:
        return Function("max", tuple(inside), largest, of_the_largest, "max({})", index=position)

    settings = layer.kernel_size, layer.stride, layer.padding, layer.dilation
    return _pooled(x, settings, maximum)


@lower.register
def _activation(layer: Activation, x: Raw | Signal, build: Build) -> Signal:
    if layer.name == "softmax":
        raise ArgumentError(
            "limits: Activation is 'softmax', which divides by a sum over the width; allowed: "
            "functions of single values"
        )
    x = build.read(x, "last") if isinstance(x, Raw) else x
    return x.each(lambda position, h: activated(layer.name, h, **layer.options))


@lower.register
def layer_norm(layer: LayerNorm, x: Raw | Signal, build: Build) -> Signal:
    return build.read(x, "last").each(
        lambda position, h: normalized(h, layer.eps, build.name("norm"), centred=True)
    )


@lower.register
def _rms_norm(layer: RMSNorm, x: Raw | Signal, build: Build) -> Signal:
    return build.read(x, "last").each(
        lambda position, h: normalized(h, layer.eps, build.name("norm"), centred=False)
    )


@lower.register
def _batch_norm(layer: BatchNorm, x: Raw | Signal, build: Build) -> Any:
    """With the statistics of the batch, as in training; the batch is all examples of a side."""
    if isinstance(x, Raw):
        return _batch_norm_of_input(layer, x, build)
    x = build.read(x, "first")
    every = tuple(x.variables[position] for position in x.positions)

    def mean(*values: Any) -> Any:
        return _by_batch(sum(values) / len(values), build)

    def power(*values: Any) -> Any:
        return _by_batch(sum(value**2 for value in values) / len(values), build)

    m = Function("m", every, mean, _none, "mean({0})", over_batch=True)
    p = Function("p", every, power, _none, "mean({0}²)", over_batch=True)

    def normalised(h: Any, m: Any, p: Any) -> Any:
        return (h - m) / np.sqrt(np.maximum(p - m * m, 0.0) + layer.eps)

    text = "({0} − {1})/√({2} − {1}² + ε)"

    def at(position: tuple[int, ...], h: Variable) -> Variable:
        parts = "h", (h, m, p), normalised, _none, text
        if len(every) == 1:
            batches = tuple(build.batches)
            y: Function = Batched(*parts, eps=layer.eps, batches=batches, index=position)
        else:
            y = Function(*parts, index=position)
        return activated(layer.activation, y)

    return x.each(at)


def _batch_norm_of_input(layer: BatchNorm, x: Raw, build: Build) -> Raw:
    """The input normalised, which is as little random as the input itself."""
    build.check_floats(x)
    if build.is_ragged:
        raise ArgumentError(
            "limits: BatchNorm of the input with lengths, whose padding would count; allowed: None"
        )

    def normalised(values: Any) -> Any:
        ones, zeros = np.ones(layer.channels), np.zeros(layer.channels)
        starts = (ones, zeros, zeros, ones)
        y, _ = batch_norm.forward(
            values, *starts, training=True, eps=layer.eps, activation=layer.activation
        )
        return y

    for side in build.sides:
        side.transform(normalised)
    return Raw(x.shape, x.is_tokens, "x̂")


def _none(*values: Any) -> tuple[Any, ...]:
    """No derivatives: those of a batch's statistics concern other examples too."""
    return ()


def _by_batch(values: Any, build: Build) -> Any:
    """The mean over the examples of each batch, for each of them."""
    values = np.broadcast_to(values, (len(values), build.batches[-1].stop))
    found = np.empty(values.shape)
    for batch in build.batches:
        found[:, batch] = values[:, batch].mean(axis=1, keepdims=True)
    return found


@lower.register
def _residual(layer: Residual, x: Raw | Signal, build: Build) -> Signal:
    x = x if isinstance(x, Signal) else build.read(x, _features(layer.inner))
    with build.child("inner"):
        branch = lower(layer.inner, x, build)
    if layer.projection is not None:
        with build.child("projection"):
            x = lower(layer.projection, x, build)
    return sums(x, branch, build.name("sum"))


def sums(x: Signal, branch: Signal, name: str) -> Signal:
    """x and what a branch made of it, position by position."""
    return branch.each(lambda position, f: total(x.variables[position], f, name=name))


def _features(layer: Layer) -> str:
    """The side on which a layer, or the first in it that says so, expects the features of x."""
    return _own_features(layer) or "last"


def _own_features(layer: Layer) -> str:
    if isinstance(layer, Dropout | Activation):
        return ""
    if isinstance(layer, Sequential | Residual):
        return next(filter(None, map(_own_features, layer.layers.values())), "")
    channels = Conv1d, Conv2d, BatchNorm, AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d
    return "first" if isinstance(layer, channels) else "last"


@lower.register
def _embedding(layer: Embedding, x: Raw | Signal, build: Build) -> Signal:
    if not (isinstance(x, Raw) and x.is_tokens):
        raise ArgumentError("limits: Embedding is given features; allowed: tokens, as the input")
    weight = build.weight(layer, "weight", layer.initializer, layer.weight.shape, 1)
    for side in build.sides:
        if side.x.size and not 0 <= side.x.min() <= side.x.max() < len(layer.weight):
            raise ArgumentError(
                f"limits: tokens go from {side.x.min()} to {side.x.max()}; allowed: 0 to "
                f"{len(layer.weight) - 1}"
            )

    def row(position: tuple[int, ...]) -> Variable:
        token = InputPosition("none", position)
        g = MatMul(weight.name, weight, InputVector("x", token, index=position), index=position)
        if layer.padding_idx is None:
            return g
        padding = layer.padding_idx % len(layer.weight)
        kept = MomentFactor(
            lambda alone: (alone.sides[0].values(token) != padding).astype(np.float64), "chosen"
        )
        return mixed((kept, g))

    return signal(x.shape, row)


@lower.register
def _learned_positions(layer: LearnedPositions, x: Raw | Signal, build: Build) -> Signal:
    table = build.weight(layer, "weight", layer.initializer, layer.weight.shape, 1)

    def added(position: tuple[int, ...], h: Variable) -> Variable:
        return total(h, bias_of(build.rows(table, position[0])), name=build.name("positions"))

    return build.read(x, "last").each(added)


@lower.register
def _positions(layer: PositionalEncoding, x: Raw | Signal, build: Build) -> Signal:
    raise ArgumentError(
        "limits: PositionalEncoding adds vectors that depend on the width; allowed: x with its "
        "positions added already, or LearnedPositions"
    )


@lower.register
def _last_step(layer: LastStep, x: Raw | Signal, build: Build) -> Signal:
    if build.is_ragged:
        raise ArgumentError(
            "limits: LastStep with lengths; allowed: SequenceClassifier, which reads the last state"
        )
    x = build.read(x, "last")
    last = x.variables[-1]
    if layer.bidirectional:
        ends = (parts_of(last)[0], parts_of(x.variables[0])[1])
        last = Concat("", ends)
    return signal((), lambda position: last)


@lower.register
def _standardize(layer: Standardize, x: Raw | Signal, build: Build) -> Signal:
    raise ArgumentError(
        "limits: Standardize takes means over examples' positions; allowed: x standardized before"
    )
