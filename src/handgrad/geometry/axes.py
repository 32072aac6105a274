"""Axes by number: those that a setting chooses, and those along which an operand was broadcast."""

from __future__ import annotations

from array_api_compat import array_namespace

from handgrad.arrays import Array


def chosen_axes(axes: int | tuple[int, ...] | None, dimensions: int) -> tuple[int, ...]:
    """The axes of an x of so many dimensions: None is all but the first."""
    if axes is None:
        return tuple(range(1, dimensions))
    return (axes,) if isinstance(axes, int) else axes


def sum_to(gradient: Array, operand: Array) -> Array:
    """Sum over the axes along which the operand was broadcast."""
    xp = array_namespace(gradient)
    extra = len(gradient.shape) - len(operand.shape)
    stretched = tuple(
        axis
        for axis, length in enumerate(gradient.shape)
        if axis < extra or operand.shape[axis - extra] != length
    )
    if stretched:
        gradient = xp.sum(gradient, axis=stretched, keepdims=True)
    return xp.reshape(gradient, operand.shape)
