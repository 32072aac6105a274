"""The operators `handgrad::lstm`, `handgrad::gru` and `handgrad::rnn`: a layer in one direction.

    lstm(x, weight_ih, weight_hh, bias_ih, bias_hh, weight_hr, h0, c0, lengths, rows, reverse, bf16)
    gru(x, weight_ih, weight_hh, bias_ih, bias_hh, h0, lengths, rows, reverse, bf16)
    rnn(x, weight_ih, weight_hh, bias_ih, bias_hh, h0, lengths, rows, is_relu, reverse, bf16)

Arguments are those of the ops of the same names, with None for what is not there; `rows` is the sum
of the lengths, N · T without any, by which the compiler knows the shapes of the gates that are kept
for backward. They return y, the final states and what is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple

from torch import Tensor

from handgrad.dispatch import SKIP
from handgrad.errors import ArgumentError
from handgrad.torch.bridge import Tensors, as_array, as_set_in_torch, as_tensor, differentiable
from handgrad.torch.one_direction import one_direction

Named = Mapping[str, Any]


class _Kind(NamedTuple):
    """One of the three, by the names that its kernel's cache has for inputs and outputs.

    `kept` are the outputs that only backward reads, with their columns in units of hidden_size.
    """

    name: str
    weights: tuple[str, ...]
    states: tuple[str, ...]
    kept: Mapping[str, int]
    constants: tuple[str, ...] = ()

    @property
    def tensors(self) -> tuple[str, ...]:
        return ("x", *self.weights, *(f"{state}0" for state in self.states), "lengths")

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.tensors, "rows", *self.constants, "reverse", "bf16")

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("y", *(f"{state}_n" for state in self.states), *self.kept)

    def named(self, inputs: Sequence[Any]) -> Named:
        return dict(zip(self.inputs, inputs, strict=True))

    def schema(self) -> str:
        arguments = (
            *("Tensor " + name for name in self.tensors[:3]),
            *("Tensor? " + name for name in self.tensors[3:]),
            "SymInt rows",
            *("bool " + name for name in (*self.constants, "reverse", "bf16")),
        )
        return f"({', '.join(arguments)}) -> ({', '.join('Tensor' for _ in self.outputs)})"


_WEIGHTS: Final = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_LSTM: Final = _Kind("lstm", (*_WEIGHTS, "weight_hr"), ("h", "c"), {"kept_gates": 4, "kept_c": 1})
_GRU: Final = _Kind("gru", _WEIGHTS, ("h",), {"kept_gates": 4})
_RNN: Final = _Kind("rnn", _WEIGHTS, ("h",), {}, ("is_relu",))


def _validate(kind: _Kind, *inputs: Any) -> None:
    given = kind.named(inputs)
    *arrays, lengths = (given[name] for name in kind.tensors)
    import_module(f"handgrad.ops.{kind.name}").validate(*arrays, lengths=lengths)
    if lengths is None:
        _check_rows(kind, given["rows"], math.prod(given["x"].shape[:2]))


def _check_rows(kind: _Kind, rows: int, steps: int) -> None:
    """Refuse gates that have not a row for each step, as their number decides what is read."""
    if rows != steps:
        raise ArgumentError(f"{kind.name}: rows is {rows}; allowed: {steps}, one for each step")


def _forward(kind: _Kind, *inputs: Any) -> tuple[Tensor, ...]:
    given = kind.named(inputs)
    *arrays, lengths = (as_array(given[name]) for name in kind.tensors)
    if lengths is not None:
        _check_rows(kind, given["rows"], int(lengths.sum()))
    options = {"nonlinearity": "relu" if given["is_relu"] else "tanh"} if kind is _RNN else {}
    with as_set_in_torch(given["bf16"]):
        (y, final), cache = import_module(f"handgrad.kernels.{kind.name}").forward(
            *arrays, lengths=lengths, reverse=given["reverse"], **options
        )
    states = final if isinstance(final, tuple) else (final,)
    return tuple(map(as_tensor, (y, *states, *(getattr(cache, name) for name in kind.kept))))


def _backward(
    kind: _Kind,
    doutputs: Tensors,
    inputs: Sequence[Any],
    outputs: Tensors,
    wanted: Sequence[bool],
) -> list[Tensor]:
    kernel = import_module(f"handgrad.kernels.{kind.name}")
    given: dict[str, Any] = {
        name: as_array(value) if isinstance(value, Tensor) else value
        for name, value in kind.named(inputs).items()
    }
    if given["lengths"] is not None:
        _check_rows(kind, given["rows"], int(given["lengths"].sum()))
    given |= zip(kind.outputs, map(as_array, outputs), strict=True)
    given |= {f"has_{name}": given[name] is not None for name in ("bias_ih", "bias_hh")}
    cache = kernel.Cache(*(given[name] for name in kernel.Cache._fields))
    dy, *dstates = map(as_array, doutputs[: 1 + len(kind.states)])
    # The gradients of the tensors but lengths, the last of them.
    buffers = tuple(None if is_wanted else SKIP for is_wanted in wanted[: len(kind.tensors) - 1])
    with as_set_in_torch(given["bf16"]):
        found = kernel.backward(
            (dy, tuple(dstates) if len(dstates) > 1 else dstates[0]), cache, out=buffers
        )
    return [as_tensor(gradient) for gradient in found if gradient is not None]


def _fake(kind: _Kind, *inputs: Any) -> tuple[Tensor, ...]:
    given = kind.named(inputs)
    x, weight_hh, rows = given["x"], given["weight_hh"], given["rows"]
    batch, steps, _ = x.shape
    size = weight_hh.shape[1]
    hidden = size if given.get("weight_hr") is None else given["weight_hr"].shape[1]
    sizes = (size, hidden)[: len(kind.states)]
    return (
        x.new_empty(batch, steps, size),
        *(x.new_empty(batch, size) for size in sizes),
        *(x.new_empty(rows, columns * hidden) for columns in kind.kept.values()),
    )


def _again(kind: _Kind, *inputs: Any) -> tuple[Tensor, ...]:
    given = kind.named(inputs)
    name = kind.name if kind is not _RNN else "rnn_relu" if given["is_relu"] else "rnn_tanh"
    return one_direction(
        name,
        given["x"],
        [given[weight] for weight in kind.weights if given[weight] is not None],
        [given[f"{state}0"] for state in kind.states],
        given["lengths"],
        given["reverse"],
    )


def _defined(kind: _Kind) -> Callable[..., tuple[Tensor, ...]]:
    return differentiable(
        kind.name,
        kind.schema(),
        validate=partial(_validate, kind),
        forward=partial(_forward, kind),
        backward=partial(_backward, kind),
        fake=partial(_fake, kind),
        again=partial(_again, kind),
        reads=(0, *range(1 + len(kind.states), len(kind.outputs))),
    )


lstm: Final = _defined(_LSTM)
gru: Final = _defined(_GRU)
rnn: Final = _defined(_RNN)
