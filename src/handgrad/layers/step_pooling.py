"""StepPooling: from a sequence to one vector, the mean or the largest of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from array_api_compat import array_namespace

from handgrad.arrays import Array, Lengths
from handgrad.errors import ShapeError
from handgrad.layers.base import Layer, Shape
from handgrad.layers.inputs import in_own_type
from handgrad.layers.lengths import settled_lengths
from handgrad.ops.arguments import check_choice

STEP_POOLINGS: Final = ("mean", "max")


class StepPooling(Layer):
    """(N, T, D) to (N, D): the "mean" of the steps, or their "max" in each feature.

    Forward:  r = Σ_t w_t ⊙ x_t
    Backward: dx_t = w_t ⊙ dr

    w_t is 1 divided by the number of steps, or for "max" 1 where a feature is largest, the first
    where several are equal, and 0 elsewhere; the cache is w. `lengths`, integers (N,), say how many
    steps of each sequence count: the others have w = 0, whatever stands there, and a sequence of
    length 0 has r = 0.

    Raises ArgumentError for another `pooling` or lengths, ShapeError for an x of other axes or
    without steps.
    """

    def __init__(self, pooling: str) -> None:
        check_choice("StepPooling", "pooling", pooling, STEP_POOLINGS)
        self.pooling = pooling

    @in_own_type
    def forward(
        self, x: Array, lengths: Lengths | None = None, *, training: bool = False
    ) -> tuple[Array, Array]:
        self.output_shape(tuple(x.shape[1:]))
        lengths = settled_lengths("StepPooling", lengths, *x.shape[:2])
        xp = array_namespace(x)
        weights = step_weights(x, lengths, self.pooling)
        z = xp.where(weights > 0, x, xp.zeros_like(x))
        return xp.sum(weights * z, axis=1), weights

    def backward(
        self,
        dy: Array,
        cache: Array,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        dx = None
        if input_gradient:
            xp = array_namespace(dy)
            dx = cache * xp.expand_dims(dy, axis=1)
        return dx, {} if gradients is None else gradients

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 2 or input_shape[0] == 0:
            raise ShapeError(
                f"StepPooling: an example has shape {input_shape}; allowed: (T, D) with T at least "
                "1"
            )
        return (input_shape[1],)

    def flops(self, input_shape: Shape) -> int:
        """One addition or comparison for every value."""
        return input_shape[0] * input_shape[1]


def step_weights(y: Array, lengths: Array | None, pooling: str) -> Array:
    """w with r = Σ w_t ⊙ y_t for y (N, T, D): (N, T, 1), for "max" (N, T, D).

    The first τ steps count, others have 0; "last" has 1 at the last that does. As a max is constant
    while its position is, w counts as one in backward.
    """
    xp = array_namespace(y)
    steps = y.shape[1]
    time = xp.arange(steps)[:, None]
    one = xp.ones_like(y[:, :, :1])
    if lengths is None and pooling == "mean":
        return one / steps
    tau = one * steps
    if lengths is not None:
        tau = one * xp.astype(lengths, y.dtype)[:, None, None]
    real = time < tau
    if pooling == "mean":
        return xp.astype(real, y.dtype) / xp.maximum(tau, one)
    if pooling == "last":
        return xp.astype(time == tau - 1, y.dtype)
    positions = xp.argmax(xp.where(real, y, -xp.inf), axis=1, keepdims=True)
    return xp.astype(real & (time == positions), y.dtype)
