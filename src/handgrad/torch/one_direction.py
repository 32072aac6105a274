"""PyTorch's own recurrent layer in one direction, where a derivative of its gradients is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def one_direction(
    name: str,
    x: Tensor,
    weights: Sequence[Tensor],
    states: Sequence[Tensor | None],
    lengths: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """y and the final states of PyTorch's function `name`, with the directions and lengths of ours.

    Shapes: x (N, T, D), states (N, size), lengths (N,) of 1 to T, y (N, T, size).
    """
    batch, steps, _ = x.shape
    rows, size = weights[1].shape
    sizes = (size, rows // _GATES[name])
    initial = [
        x.new_zeros(1, batch, columns) if state is None else state[None]
        for state, columns in zip(states, sizes, strict=False)
    ]
    order = _running_order(x, lengths) if reverse else None
    settings = (list(weights), len(weights) > 3, 1, 0.0, False, False)
    run: Any = getattr(torch._VF, name)
    hx = initial if len(initial) > 1 else initial[0]
    x_run = _gathered(x, order)
    if lengths is None:
        y_run, *final = run(x_run, hx, *settings, True)
    else:
        packed = pack_padded_sequence(x_run, lengths, batch_first=True, enforce_sorted=True)
        data, *final = run(packed.data, packed.batch_sizes, hx, *settings)
        y_packed = PackedSequence(data, packed.batch_sizes)
        y_run, _ = pad_packed_sequence(y_packed, batch_first=True, total_length=steps)
    return (_gathered(y_run, order), *(state[0] for state in final))


def _running_order(x: Tensor, lengths: Tensor | None) -> Tensor:
    """For every sequence its steps from the last to the first, and then its padding, as it is."""
    batch, steps, _ = x.shape
    t = torch.arange(steps)
    ends = torch.full((batch, 1), steps) if lengths is None else lengths[:, None]
    return torch.where(t < ends, ends - 1 - t, t)


def _gathered(values: Tensor, order: Tensor | None) -> Tensor:
    if order is None:
        return values
    return values.gather(1, order[:, :, None].expand(-1, -1, values.shape[2]))
