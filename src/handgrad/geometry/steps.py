"""Steps of sequences of several lengths: which there are, and the order in which they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from array_api_compat import array_namespace, device

from handgrad.arrays import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def active_steps(
    lengths: Int[Array, "N"] | None, steps: int, reverse: bool
) -> Bool[Array, "N T 1"] | None:
    """Masks of the sequences that have a step at each time index; None where all have all."""
    if lengths is None:
        return None
    xp = array_namespace(lengths)
    time = xp.arange(steps, dtype=lengths.dtype, device=device(lengths))
    if reverse:
        time = xp.flip(time)
    return xp.expand_dims(time < xp.expand_dims(lengths, axis=1), axis=2)


def in_running_order(
    x: Float[Array, "N T D"], active: Bool[Array, "N T 1"] | None, reverse: bool
) -> Float[Array, "N T D"]:
    """x in the order in which its steps run, with 0 for padding, whatever stands there."""
    xp = array_namespace(x)
    if reverse:
        x = xp.flip(x, axis=1)
    return x if active is None else xp.where(active, x, xp.zeros_like(x))


def in_time_order(
    states: Float[Array, "N T D"], active: Bool[Array, "N T 1"] | None, reverse: bool
) -> Float[Array, "N T D"]:
    """The inverse of `in_running_order`: 0 where a sequence has no step."""
    xp = array_namespace(states)
    if active is not None:
        states = xp.where(active, states, xp.zeros_like(states))
    return xp.flip(states, axis=1) if reverse else states
