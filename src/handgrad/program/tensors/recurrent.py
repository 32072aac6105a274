"""Recurrent layers and cells, as the modules of torch.nn call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.functional import dropout, linear
from handgrad.program.tensors.table import enter, special, torch_module, xp

#: A step takes the gates of the input and those of the state before, and the states.
Step = Callable[[Any, Any, tuple[Any, ...]], tuple[Any, ...]]


def _parts(gates: Any, width: Any, count: int) -> tuple[Any, ...]:
    return tuple(
        gates[..., k * width : (k + 1) * width if k < count - 1 else None] for k in range(count)
    )


def _lstm(of_input: Any, of_state: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
    """Hochreiter and Schmidhuber, Long short-term memory (1997), with Gers' forget gate (2000)."""
    _, c = states
    i, f, g, o = _parts(of_input + of_state, c.shape[-1], 4)
    c = special.expit(f) * c + special.expit(i) * xp.tanh(g)
    return special.expit(o) * xp.tanh(c), c


def _gru(of_input: Any, of_state: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
    """Cho and others, Learning phrase representations (2014), with the reset after the product."""
    (h,) = states
    width = h.shape[-1]
    r, z, n = _parts(of_input, width, 3)
    r_h, z_h, n_h = _parts(of_state, width, 3)
    z = special.expit(z + z_h)
    n = xp.tanh(n + special.expit(r + r_h) * n_h)
    return ((1 - z) * n + z * h,)


def _plain(activation: Callable[[Any], Any]) -> Step:
    """Elman, Finding structure in time (1990)."""
    return lambda of_input, of_state, states: (activation(of_input + of_state),)


#: Each by the name that torch gives its function, with the number of its states.
_STEPS: dict[str, tuple[Step, int]] = {
    "lstm": (_lstm, 2),
    "gru": (_gru, 1),
    "rnn_tanh": (_plain(xp.tanh), 1),
    "rnn_relu": (_plain(lambda x: xp.maximum(x, 0)), 1),
}


def _rounds(
    step: Step, x: Any, states: tuple[Any, ...], own: Sequence[Any], has_biases: bool
) -> tuple[Any, tuple[Any, ...]]:
    """The first state after each round, and the last states; x is (T, N, D)."""
    biases = own[2:4] if has_biases else (None, None)
    projection = own[-1] if len(own) in (3, 5) else None
    outputs = []
    for of_input in linear(x, own[0], biases[0]):
        states = step(of_input, linear(states[0], own[1], biases[1]), states)
        if projection is not None:
            states = (linear(states[0], projection), *states[1:])
        outputs.append(states[0])
    return xp.stack(outputs), states


def _recurrent(name: str) -> Callable[..., Any]:
    step, count = _STEPS[name]

    def recurrent(
        x: Any,
        hx: Any,
        params: Any,
        has_biases: Any,
        num_layers: int = 1,
        dropout_p: Any = 0.0,
        train: bool = False,
        bidirectional: bool = False,
        batch_first: bool = False,
    ) -> Any:
        """The output, and of each state the last, those of every layer and direction in turn."""
        if not isinstance(has_biases, bool):
            refuse(f"{name} of a PackedSequence is not known; write it of padded sequences")
        states = hx if count > 1 else (hx,)
        x = xp.swapaxes(x, 0, 1) if batch_first else x
        ways = 2 if bidirectional else 1
        each = len(params) // (num_layers * ways)
        last: list[tuple[Any, ...]] = []
        for layer in range(num_layers):
            outputs = []
            for way in range(ways):
                k = layer * ways + way
                own = params[k * each : (k + 1) * each]
                start = tuple(state[k] for state in states)
                given = xp.flip(x, 0) if way else x
                y, end = _rounds(step, given, start, own, has_biases)
                outputs.append(xp.flip(y, 0) if way else y)
                last.append(end)
            x = xp.concatenate(outputs, axis=-1) if bidirectional else outputs[0]
            if layer < num_layers - 1:
                x = dropout(x, dropout_p, train)
        x = xp.swapaxes(x, 0, 1) if batch_first else x
        return (x, *(xp.stack(list(found)) for found in zip(*last, strict=True)))

    return recurrent


def _cell(name: str) -> Callable[..., Any]:
    step, count = _STEPS[name]

    def cell(x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        states = tuple(hx) if count > 1 else (hx,)
        found = step(linear(x, w_ih, b_ih), linear(states[0], w_hh, b_hh), states)
        return found if count > 1 else found[0]

    return cell


for _name in _STEPS:
    enter(_name, _recurrent(_name))
    enter(f"{_name}_cell", _cell(_name))


@torch_module("LSTM", "GRU", "RNN")
def of_module(module: Any, x: Any, hx: Any = None) -> Any:
    """torch.nn.LSTM, GRU and RNN: the states are zeros where none are given."""
    name = {"RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}.get(module.mode, module.mode.lower())
    count = _STEPS[name][1]
    is_batch = x.ndim == 3
    if not is_batch:
        x = xp.expand_dims(x, 0 if module.batch_first else 1)
        hx = _each(hx, lambda state: state[:, None])
    if hx is None:
        ways = 2 if module.bidirectional else 1
        batch = x.shape[0 if module.batch_first else 1]
        widths = (module.proj_size or module.hidden_size, module.hidden_size)[:count]
        zeros = tuple(xp.zeros((module.num_layers * ways, batch, width)) for width in widths)
        hx = zeros if count > 1 else zeros[0]
    params = [getattr(module, each) for each in module._flat_weights_names]
    y, *last = _recurrent(name)(
        x,
        hx,
        params,
        module.bias,
        module.num_layers,
        module.dropout,
        module.training,
        module.bidirectional,
        module.batch_first,
    )
    if not is_batch:
        y = y[0] if module.batch_first else y[:, 0]
        last = [state[:, 0] for state in last]
    return y, tuple(last) if count > 1 else last[0]


def _each(states: Any, change: Callable[[Any], Any]) -> Any:
    return (
        tuple(map(change, states))
        if isinstance(states, tuple | list)
        else (None if states is None else change(states))
    )


@torch_module("LSTMCell", "GRUCell", "RNNCell")
def of_cell(module: Any, x: Any, hx: Any = None) -> Any:
    """torch.nn.LSTMCell, GRUCell and RNNCell."""
    kind = type(module).__name__.removesuffix("Cell").lower()
    name = f"rnn_{module.nonlinearity}" if kind == "rnn" else kind
    count = _STEPS[name][1]
    if hx is None:
        zeros = xp.zeros((*x.shape[:-1], module.hidden_size))
        hx = (zeros, zeros) if count > 1 else zeros
    return _cell(name)(x, hx, module.weight_ih, module.weight_hh, module.bias_ih, module.bias_hh)
