"""Shared parts of the recurrent ops: the order in which steps run, their masks, and checks.

Sequences lie in (N, T, D), and a sequence of `lengths[n]` steps is followed by padding. Steps run
in the order of time or, with `reverse`, against it; the ops compute in running order, so that one
loop serves both. A sequence that has no step at some time index keeps its state: at its end in the
order of time, before its own last step against it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.ops.arguments import check_lengths, check_vector

if TYPE_CHECKING:
    from jaxtyping import Float

Gradients = tuple[Array | None, ...]


def zero_state(x: Float[Array, "N T D"], features: int) -> Float[Array, "N H"]:
    """The state before the first step where none is given."""
    xp = array_namespace(x)
    return xp.zeros((x.shape[0], features), dtype=x.dtype, device=device(x))


def blocks(stacked: Float[Array, "*batch G"], count: int) -> tuple[Float[Array, "*batch H"], ...]:
    """The gates that stand beside each other along the last axis."""
    size = stacked.shape[-1] // count
    return tuple(stacked[..., k * size : (k + 1) * size] for k in range(count))


def accumulating(gradients: Callable[[Any, Any], Gradients]) -> Callable[..., Gradients]:
    """Give a `backward_weights(steps, cache)` a third argument, `totals`: what it adds to."""

    @functools.wraps(gradients)
    def backward_weights(steps: Any, cache: Any, totals: Gradients | None = None) -> Gradients:
        found = gradients(steps, cache)
        if totals is None:
            return found
        pairs = zip(totals, found, strict=True)
        return tuple(None if new is None else total + new for total, new in pairs)

    return backward_weights


def check_sequences(op: str, x: Array, lengths: Array | None) -> None:
    """Raise ShapeError unless x is (N, T, D) with T ≥ 1 and lengths is None or integers (N,)."""
    if len(x.shape) != 3 or x.shape[1] == 0:
        raise ShapeError(
            f"{op}: x has shape {tuple(x.shape)}; allowed: (N, T, D) with T at least 1"
        )
    if lengths is not None:
        check_lengths(op, lengths, x.shape[0])


def check_matrix(op: str, name: str, matrix: Array, rows: int, columns: int, because: str) -> None:
    """Raise ShapeError unless `matrix` has shape (rows, columns)."""
    if tuple(matrix.shape) != (rows, columns):
        raise ShapeError(
            f"{op}: {name} has shape {tuple(matrix.shape)}; "
            f"allowed: ({rows}, {columns}), because {because}"
        )


def check_gates(op: str, weight_hh: Array, gates: int) -> int:
    """The number of hidden units in weight_hh (gates · H, ...); ShapeError if there is none."""
    if len(weight_hh.shape) != 2 or weight_hh.shape[0] % gates != 0:
        rows = "H" if gates == 1 else f"{gates} H"
        raise ShapeError(
            f"{op}: weight_hh has shape {tuple(weight_hh.shape)}; allowed: ({rows}, H)"
        )
    return int(weight_hh.shape[0] // gates)


def check_weights(
    op: str,
    x: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None,
    bias_hh: Array | None,
    *,
    state: int,
) -> None:
    """Raise ShapeError unless the weights fit x, one another and a state of this size."""
    rows = weight_hh.shape[0]
    check_matrix(op, "weight_hh", weight_hh, rows, state, f"the state has size {state}")
    check_matrix(
        op,
        "weight_ih",
        weight_ih,
        rows,
        x.shape[2],
        f"weight_hh has shape {tuple(weight_hh.shape)} and x {tuple(x.shape)}",
    )
    for name, bias in (("bias_ih", bias_ih), ("bias_hh", bias_hh)):
        if bias is not None:
            check_vector(op, name, bias, rows)


def check_state(op: str, name: str, state: Array | None, x: Array, features: int) -> None:
    """Raise ShapeError unless `state` is None or (N, features)."""
    if state is not None and tuple(state.shape) != (x.shape[0], features):
        raise ShapeError(
            f"{op}: {name} has shape {tuple(state.shape)}; allowed: ({x.shape[0]}, {features}), "
            f"one state for each of {x.shape[0]} sequences"
        )
