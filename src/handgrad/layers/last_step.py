"""LastStep: from a sequence to one vector, behind a recurrent layer."""

from __future__ import annotations

from collections.abc import Mapping

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.kernels import invalidate_capture
from handgrad.layers.base import Layer, Shape
from handgrad.layers.inputs import in_own_type


class LastStep(Layer):
    """(N, T, D) to (N, D): the values at the last step; the cache is the shape of x.

    With `bidirectional`, where the second half of the features ran against time, that half is taken
    from the first step: either half has then seen the whole sequence. Sequences of different
    lengths end at different steps; take the final state of the recurrent layer for these.
    """

    forward_capturable = True

    def __init__(self, *, bidirectional: bool = False) -> None:
        self.bidirectional = bidirectional

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Shape]:
        self.output_shape(tuple(x.shape[1:]))
        y = x[:, -1, :]
        if self.bidirectional:
            invalidate_capture("halves of the features were concatenated by NumPy")
            half = x.shape[2] // 2
            y = array_namespace(x).concat((x[:, -1, :half], x[:, 0, half:]), axis=-1)
        return y, tuple(x.shape)

    def backward(
        self,
        dy: Array,
        cache: Shape,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        dx = None
        if input_gradient:
            xp = array_namespace(dy)
            _, steps, features = cache
            half = features // 2 if self.bidirectional else features
            times = xp.expand_dims(xp.arange(steps), axis=1)
            taken = xp.where(xp.arange(features) < half, times == steps - 1, times == 0)
            dx = xp.where(taken, xp.expand_dims(dy, axis=1), xp.zeros(cache, dtype=dy.dtype))
        return dx, {} if gradients is None else gradients

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 2 or input_shape[0] == 0:
            raise ShapeError(
                f"LastStep: an example has shape {input_shape}; allowed: (T, D) with T at least 1"
            )
        return (input_shape[1],)

    def flops(self, input_shape: Shape) -> int:
        return 0
