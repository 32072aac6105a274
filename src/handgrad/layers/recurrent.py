"""Shared parts of recurrent layers: an op over whole sequences, stacked, in both directions too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, Unpack

import numpy as np
from array_api_compat import array_namespace

from handgrad import initializers
from handgrad.arrays import Array, Lengths
from handgrad.dispatch import SKIP
from handgrad.errors import ArgumentError, ShapeError
from handgrad.kernels.concatenate import concatenate, slice_features
from handgrad.kernels.sums import add
from handgrad.keywords import with_defaults
from handgrad.layers.base import Layer, Shape
from handgrad.layers.construction import FROM_SEED, InputSize, known
from handgrad.layers.inputs import in_own_type
from handgrad.layers.lengths import settled_lengths
from handgrad.layers.settings import RecurrentSettings
from handgrad.ops import dropout as dropout_op

#: One array, of LSTM the pair (h, c); of shape (layers · directions, N, size).
#: h, or of an LSTM (h, c); of a gradient each may be None.
State: TypeAlias = Array | tuple[Array, Array]

#: The biases of a layer by the four modes of NVIDIA's cudnnRNNBiasMode_t.
BIAS_MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "input": ("bias_ih",),
    "recurrent": ("bias_hh",),
    "double": ("bias_ih", "bias_hh"),
}


class Cache(NamedTuple):
    """The caches of every layer's directions, and of the dropout before it, None without one.

    `from_learned` says of each part of the state whether the learned one was the initial one.
    """

    layers: tuple[tuple[Any, ...], ...]
    dropouts: tuple[Any, ...]
    from_learned: tuple[bool, ...]


class Recurrent(Layer):
    """Shared parts of RNN, LeakyRNN, LSTM and GRU.

        (y, state), cache = layer.forward(x, state, lengths, training=True)
        (dx, dstate0), gradients = layer.backward((dy, dstate), cache)

    x is (N, T, input_size) and y (N, T, directions · size). `lengths`, integers (N,), says how many
    steps of each sequence count: y is 0 after them, and what stands in x there has no influence;
    None means all T. `state` is the initial state and the returned one the final state of every
    layer and direction, (layers · directions, N, size), forward before reverse; None, or None as a
    part of it, starts from 0. In backward dstate, or a part of it, is None where nothing depends on
    the final state, and dstate0, or a part of it, is None where forward was given none.

    With `learn_h0` None starts from what is learned instead: `h0`, of LSTM also `c0`, parameters
    (layers · directions, size), at first 0, from which every sequence of the batch starts. Their
    gradients are Σ_n dstate0_n; 0 where forward was given a state, which goes first.

    `bias` is one of cuDNN's four modes: "none", "input" (b_ih alone), "recurrent" (b_hh alone) or
    "double" (both). As in PyTorch, True is both and False none. Of a GRU the two single ones are
    different functions, because b_hn stands within the reset gate's product; of the others they are
    the same function with half the numbers of "double".

    Each layer reads the outputs of both directions of the one below. Between layers, in training,
    `dropout` switches outputs off; the masks come from `rng`, as do the first weights: uniform
    between ±1/√hidden_size, biases too. Parameters have PyTorch's names (`weight_ih_l0`,
    `bias_hh_l1_reverse`, ...) and shapes, so that a state_dict fits.

    In a container only y goes on; the state starts as without one, and the final one is left.

    Raises ShapeError for x or a state that do not fit, ArgumentError for settings that do not.
    Source: NVIDIA, cuDNN API reference (undated), cudnnRNNBiasMode_t; Yeung, The Deep Learning Dump
    (2023), section 3.
    """

    generator_names = ("rng",)
    op: ModuleType
    #: The op's arguments after x: what is learned, and the initial states.
    weights: ClassVar[tuple[str, ...]] = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    states: ClassVar[tuple[str, ...]] = ("h",)
    #: Blocks of hidden_size rows in the weights.
    gates: ClassVar[int] = 1
    #: Sums, products and functions of single elements in a step, for every hidden unit.
    flops_per_unit: ClassVar[int]

    def __init__(
        self,
        input_size: InputSize,
        hidden_size: int,
        num_layers: int = 1,
        *,
        rng: np.random.Generator = FROM_SEED,
        **settings: Unpack[RecurrentSettings],
    ) -> None:
        input_size = known(input_size)
        chosen = with_defaults(type(self).__name__, RecurrentSettings, settings)
        dropout, learn_h0, dtype = chosen["dropout"], chosen["learn_h0"], chosen["dtype"]
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.directions = 2 if chosen["bidirectional"] else 1
        self.dropout = dropout
        self.bias = self._bias_mode(chosen["bias"])
        for name in ("input_size", "hidden_size", "num_layers"):
            if not getattr(self, name) >= 1:
                raise self._refusal(f"{name} is {getattr(self, name)!r}; allowed: 1 or more")
        if not 0 <= dropout <= 1:
            raise self._refusal(f"dropout is {dropout!r}; allowed: 0 to 1")
        self.rng = rng if dropout > 0 else None
        bound = 1.0 / math.sqrt(hidden_size)
        names = []
        for layer in range(num_layers):
            for direction in range(self.directions):
                for name, shape in self._shapes(self._inputs(layer)).items():
                    names.append(name + _suffix(layer, direction))
                    first = initializers.uniform(shape, rng, bound=bound, dtype=dtype)
                    setattr(self, names[-1], first)
        for name, size in zip(self.states, self._state_sizes(), strict=True):
            first = np.zeros((num_layers * self.directions, size), dtype=dtype)
            setattr(self, f"{name}0", first if learn_h0 else None)
        self.learned_states = tuple(f"{name}0" for name in self.states) if learn_h0 else ()
        self.parameter_names = (*names, *self.learned_states)

    @property
    def output_size(self) -> int:
        """Features of y from one direction, and of the state h."""
        return self.hidden_size

    def _bias_mode(self, bias: bool | str) -> str:
        """The mode that `bias` names, of those whose arrays the op takes; True is all of these."""
        modes = [mode for mode, names in BIAS_MODES.items() if set(names) <= set(self.weights)]
        if isinstance(bias, bool | np.bool_):
            return modes[-1] if bias else "none"
        if not isinstance(bias, str) or bias not in modes:
            raise self._refusal(f"bias is {bias!r}; allowed: True, False, {', '.join(modes)}")
        return bias

    def _inputs(self, layer: int) -> int:
        """Features that go into a layer."""
        return self.input_size if layer == 0 else self.directions * self.output_size

    def _shapes(self, inputs: int) -> dict[str, Shape]:
        """The parameters of one layer in one direction, without a suffix."""
        rows = self.gates * self.hidden_size
        found: dict[str, Shape] = {
            "weight_ih": (rows, inputs),
            "weight_hh": (rows, self.output_size),
        }
        return found | dict.fromkeys(BIAS_MODES[self.bias], (rows,))

    def _options(self) -> dict[str, Any]:
        """Settings of the op beside `lengths` and `reverse`."""
        return {}

    def _refusal(self, found: str) -> ArgumentError:
        return ArgumentError(f"{type(self).__name__}: {found}")

    @in_own_type
    def forward(  # type: ignore[override]  # it returns its state too; see `forward_y`
        self,
        x: Array,
        state: State | None = None,
        lengths: Lengths | None = None,
        *,
        training: bool = False,
    ) -> tuple[tuple[Array, State], Cache]:
        self._check_x(tuple(x.shape))
        xp = array_namespace(x)
        parts = self._parts(state, x.shape[0])
        from_learned = tuple(bool(self.learned_states) and part is None for part in parts)
        initial = self._of_each(parts)
        lengths = settled_lengths(type(self).__name__, lengths, *x.shape[:2])
        caches, finals = [], []
        dropouts: list[Any] = []
        for layer in range(self.num_layers):
            dropouts.append(None)
            if layer > 0 and self.dropout > 0 and training:
                x, dropouts[layer] = dropout_op.forward(x, self.dropout, self.rng)
            outputs, caches_of_layer = [], []
            for direction in range(self.directions):
                number = layer * self.directions + direction
                (y, final), cache = self.op.forward(
                    x,
                    *(getattr(self, name, None) for name in self._names(layer, direction)),
                    *self._with_learned(initial[number], number, x),
                    lengths=lengths,
                    reverse=direction == 1,
                    **self._options(),
                )
                outputs.append(y)
                finals.append(final if isinstance(final, tuple) else (final,))
                caches_of_layer.append(cache)
            x = outputs[0] if self.directions == 1 else concatenate(outputs)
            caches.append(tuple(caches_of_layer))
        stacked = tuple(xp.stack(parts, axis=0) for parts in zip(*finals, strict=True))
        return (x, self._as_state(stacked)), Cache(tuple(caches), tuple(dropouts), from_learned)

    def backward(  # type: ignore[override]
        self,
        dy: tuple[Array | None, State | None],
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[tuple[Array | None, State | None], Mapping[str, Array]]:
        if not isinstance(dy, tuple) or len(dy) != 2:
            raise self._refusal(
                f"dy is a {type(dy).__name__}; allowed: (dy, dstate), in which dstate is None "
                "where nothing depends on the state"
            )
        dx: Any
        dx, dstate = dy
        xp = array_namespace(dx)
        dfinals = self._of_each(self._parts(dstate, dx.shape[0], "dstate"))
        dinitial: list[Any] = [None] * len(dfinals)
        found: dict[str, Any] = {}
        for layer in reversed(range(self.num_layers)):
            wants_dx = input_gradient or layer > 0
            size = self.output_size
            dxs = []
            for direction in range(self.directions):
                number = layer * self.directions + direction
                names = self._names(layer, direction)
                start = direction * size
                dy_here = dx if self.directions == 1 else slice_features(dx, start, start + size)
                buffers = [
                    SKIP if name in self.frozen else (gradients or {}).get(name) for name in names
                ]
                dx_here, *rest = self.op.backward(
                    (dy_here, self._as_state(dfinals[number])),
                    cache.layers[layer][direction],
                    out=(None if wants_dx else SKIP, *buffers, *(None for _ in self.states)),
                )
                dxs.append(dx_here)
                dinitial[number] = rest[len(names) :]
                found.update(zip(names, rest[: len(names)], strict=True))
            if wants_dx:
                dx = dxs[0] if self.directions == 1 else add(*dxs)
            if cache.dropouts[layer] is not None:
                dx = dropout_op.backward(dx, cache.dropouts[layer])
        dparts = list(zip(*dinitial, strict=True))
        for i, name in enumerate(self.learned_states):
            if cache.from_learned[i]:
                found[name] = xp.stack([xp.sum(dpart, axis=0) for dpart in dparts[i]], axis=0)
                dparts[i] = (None,)
            else:
                found[name] = xp.zeros_like(getattr(self, name))
            if gradients is not None and name not in self.frozen:
                gradients[name][...] = found[name]
        dstate0 = None
        if any(dpart[0] is not None for dpart in dparts):
            dstate0 = self._as_state(
                tuple(None if dpart[0] is None else xp.stack(dpart, axis=0) for dpart in dparts)
            )
        if gradients is None:
            gradients = {name: found[name] for name in self.trained_names}
        return (dx if input_gradient else None, dstate0), gradients

    def forward_y(self, *inputs: Array, **settings: object) -> tuple[Array, object]:
        forward: Any = self.forward
        (y, _), cache = forward(*inputs, **settings)
        return y, cache

    def backward_y(
        self, dy: Array, cache: object, **settings: object
    ) -> tuple[Array | None, Mapping[str, Array]]:
        backward: Any = self.backward
        (dx, _), found = backward((dy, None), cache, **settings)
        return dx, found

    def _names(self, layer: int, direction: int) -> list[str]:
        """The op's weights, in its order; those that this layer has not are no attributes."""
        return [name + _suffix(layer, direction) for name in self.weights]

    def _state_sizes(self) -> tuple[int, ...]:
        return (self.output_size, self.hidden_size)[: len(self.states)]

    def _as_state(self, parts: tuple[Any, ...]) -> State:
        return parts if len(self.states) > 1 else parts[0]

    def _parts(
        self, state: State | None, batch: int, what: str = "state"
    ) -> tuple[Array | None, ...]:
        """The parts of a state, checked; Nones where there is none."""
        if state is None:
            return (None,) * len(self.states)
        several = len(self.states) > 1
        if isinstance(state, tuple | list) != several or (several and len(state) != 2):
            allowed = f"a pair ({', '.join(self.states)})" if several else "one array"
            raise self._refusal(f"{what} is a {type(state).__name__}; allowed: {allowed}, or None")
        parts = tuple(state) if several else (state,)
        number = self.num_layers * self.directions
        for name, part, size in zip(self.states, parts, self._state_sizes(), strict=True):
            if part is not None and tuple(part.shape) != (number, batch, size):
                raise ShapeError(
                    f"{type(self).__name__}: {name} of {what} has shape {tuple(part.shape)}; "
                    f"allowed: {(number, batch, size)}, as (layers · directions, N, size)"
                )
        return parts

    def _of_each(self, parts: tuple[Array | None, ...]) -> list[tuple[Array | None, ...]]:
        """The parts of the state of every layer and direction."""
        return [
            tuple(None if part is None else part[k, ...] for part in parts)
            for k in range(self.num_layers * self.directions)
        ]

    def _with_learned(
        self, state: tuple[Array | None, ...], number: int, x: Array
    ) -> tuple[Array | None, ...]:
        """The initial state of one layer and direction: where none is given, the learned one, from
        which every sequence starts."""
        if not self.learned_states:
            return state
        xp, batch = array_namespace(x), x.shape[0]
        learned = [getattr(self, name)[number, :] for name in self.learned_states]
        return tuple(
            xp.broadcast_to(ours, (batch, *ours.shape)) if given is None else given
            for ours, given in zip(learned, state, strict=True)
        )

    def _check_x(self, shape: Shape) -> None:
        if len(shape) != 3 or shape[2] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: x has shape {shape}; allowed: (N, T, {self.input_size})"
            )

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 2 or input_shape[1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: an example has shape {input_shape}; "
                f"allowed: (T, {self.input_size})"
            )
        return (input_shape[0], self.directions * self.output_size)

    def flops(self, input_shape: Shape) -> int:
        """Products with a multiply-add as 2, biases, and `flops_per_unit`."""
        self.output_shape(input_shape)
        of_a_step = 0
        for layer in range(self.num_layers):
            shapes = self._shapes(self._inputs(layer)).values()
            weights = sum((2 if len(shape) == 2 else 1) * math.prod(shape) for shape in shapes)
            of_a_step += self.directions * (weights + self.flops_per_unit * self.hidden_size)
        return input_shape[0] * of_a_step

    def input_flops(self, input_shape: Shape) -> int:
        """The products of the first layer with x."""
        weights = self._shapes(self.input_size)["weight_ih"]
        return 2 * input_shape[0] * self.directions * math.prod(weights)


def _suffix(layer: int, direction: int) -> str:
    return f"_l{layer}_reverse" if direction else f"_l{layer}"
