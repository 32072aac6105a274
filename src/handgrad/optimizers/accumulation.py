"""Accumulation: the gradient of a large batch from several small ones, exactly."""

from __future__ import annotations

from collections.abc import Mapping

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.layers.flat import FlatArrays, check_same_arrays


class Accumulation:
    """Σ nᵢ gᵢ / Σ nᵢ over parts of a batch, where gᵢ is the gradient of a mean over nᵢ examples.

    This is the gradient of the mean over the whole batch, also where the parts differ in size. nᵢ
    is what the loss divided by: examples, targets that are not ignored, or their summed weight.
    """

    def __init__(self, parameters: Mapping[str, Array]) -> None:
        self._sum = FlatArrays.of(parameters).zeros_like()
        self._examples = 0.0

    def add(self, gradients: Mapping[str, Array], examples: float) -> None:
        """Count in the gradient of a mean over this many examples; the arrays are free again.

        Raises ArgumentError for fewer than 0 and for other names than the parameters', ShapeError
        for other shapes.
        """
        if not examples >= 0:
            raise ArgumentError(f"Accumulation.add: examples is {examples}; allowed: 0 or more")
        self._examples += examples
        if type(gradients) is FlatArrays and gradients.layout == self._sum.layout:
            self._sum.buffer += examples * gradients.buffer
            return
        check_same_arrays("Accumulation.add: gradients", self._sum, gradients)
        for name, total in self._sum.items():
            total += examples * gradients[name]

    def take(self) -> FlatArrays:
        """The gradient of the whole batch, 0 for no examples; what follows starts a new batch."""
        mean = self._sum
        if self._examples > 0:
            mean.buffer /= self._examples
        self._sum = mean.zeros_like()
        self._examples = 0.0
        return mean
