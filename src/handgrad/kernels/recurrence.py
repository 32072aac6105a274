"""Shared parts of the adapters of recurrent kernels: lengths, and caches as the reference has them.

Kernels keep one row for each step that counts: all of time 0 before those of time 1, and within a
time the longer sequences first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.geometry.steps import active_steps, in_running_order
from handgrad.kernels import invalidate_capture
from handgrad.kernels.memory import indices, output_buffer


def checked_lengths(lengths: Array | None, batch: int, steps: int) -> tuple[Array | None, int]:
    """Lengths as kernels take them and their sum; IndexError for one outside 0 to `steps`."""
    if lengths is None:
        return None, batch * steps
    invalidate_capture("lengths decide the sizes of arrays")
    if lengths.size > 0 and not (lengths.min() >= 0 and lengths.max() <= steps):
        raise IndexError("lengths")
    return indices(lengths), int(lengths.sum())


def output_buffers(
    out: Any,
    x: Array,
    weight_ih: Array,
    weight_hh: Array,
    has_bias_ih: bool,
    has_bias_hh: bool,
    *optional: Array | None,
) -> tuple[Array | None, ...]:
    """The output buffers of backward, in forward's order; `optional` inputs come last."""
    at = out or (None,) * (5 + len(optional))
    bias = (weight_hh.shape[0],)
    return (
        output_buffer(at[0], x),
        output_buffer(at[1], weight_ih),
        output_buffer(at[2], weight_hh),
        output_buffer(at[3], x, bias) if has_bias_ih else None,
        output_buffer(at[4], x, bias) if has_bias_hh else None,
        *(
            None if like is None else output_buffer(buffer, like)
            for buffer, like in zip(at[5:], optional, strict=True)
        ),
    )


class Run:
    """A batch of sequences in running order, as caches of the reference show them."""

    def __init__(self, x: Array, lengths: Array | None, reverse: bool) -> None:
        self.batch, self.steps = x.shape[:2]
        self.lengths = lengths
        self.reverse = reverse
        self.active = active_steps(lengths, self.steps, reverse)

    def inputs(self, x: Array) -> Array:
        return in_running_order(x, self.active, self.reverse)

    def kept(self, rows: Array) -> Array:
        """An array of a kernel's cache as (N, T, ...): 0 where a sequence has no step."""
        batch, steps = self.batch, self.steps
        lengths = np.full(batch, steps) if self.lengths is None else self.lengths
        index = np.full((batch, steps), -1)
        order = np.argsort(-lengths, kind="stable")
        start = 0
        for t in range(steps):
            count = int(np.sum(lengths > t))
            index[order[:count], t] = np.arange(start, start + count)
            start += count
        values = np.zeros((batch, steps, rows.shape[1]), rows.dtype)
        values[index >= 0] = rows[index[index >= 0]]
        return values[:, ::-1] if self.reverse else values

    def states_of(self, y: Array, initial: Array | None) -> Array:
        """The states whose part in y is all that there is to them."""
        return self.states(y[:, ::-1] if self.reverse else y, initial)

    def states(self, values: Array, initial: Array | None) -> Array:
        """(N, T + 1, ...): the initial state, then what each step of `values` came to."""
        state = (
            np.zeros((self.batch, values.shape[2]), values.dtype) if initial is None else initial
        )
        states = [state]
        for t in range(self.steps):
            new = values[:, t]
            state = new if self.active is None else np.where(self.active[:, t], new, state)
            states.append(state)
        return np.stack(states, axis=1)
