"""Standardize: every sample to mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers.base import OpLayer, Shape
from handgrad.layers.inputs import in_own_type
from handgrad.ops import standardize


class Standardize(OpLayer):
    """y = (x − μ)/√(σ² + ε) for each sample, with the mean and variance of its values over `axes`.

    None takes all axes but the batch's, axis 0, whatever their number: a vector (N, D), a sequence
    (N, T, D) or an image (N, C, H, W) is standardised as a whole. Others are one axis or several,
    as (-2, -1) for the matrix of each channel of an image.

    Raises ArgumentError for axes that no x has or that of the batch, ShapeError for an x without
    another axis.
    Source: Careddu, Custom Neural Networks (undated), sections 1 and 2, with the eps that they
    leave out.
    """

    op = standardize

    def __init__(self, axes: int | Sequence[int] | None = None, *, eps: float = 1e-5) -> None:
        several = [axes] if isinstance(axes, int) else axes
        if several is not None and not (
            isinstance(several, tuple | list)
            and several
            and all(isinstance(axis, int) and not isinstance(axis, bool) for axis in several)
        ):
            raise ArgumentError(
                f"Standardize: axes are {shown(axes)}; allowed: an int, several ints, or None for "
                "all but the batch"
            )
        self.axes = None if several is None else tuple(several)
        self.eps = eps

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, object]:
        self._check(tuple(x.shape[1:]))
        return standardize.forward(x, axes=self.axes, eps=self.eps)

    def _check(self, example: Shape) -> None:
        count = len(example)
        if count == 0:
            raise ShapeError("Standardize: an example has shape (); allowed: at least one axis")
        if self.axes is not None and not all(1 <= abs(axis) <= count for axis in self.axes):
            raise ArgumentError(
                f"Standardize: axes are {self.axes}, and an example has shape {example}; allowed: "
                f"1 to {count}, or {-count} to -1, as axis 0 is that of the batch"
            )

    def output_shape(self, input_shape: Shape) -> Shape:
        self._check(input_shape)
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        return 5 * math.prod(input_shape)
