"""Positions added to the features of every step: sines and cosines, or learned rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any, Final

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.initializers import Initializer
from handgrad.layers.base import Layer, OpLayer, Shape
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.inputs import in_own_type
from handgrad.ops import embedding, positional_encoding

#: GPT-2's choice for learned positions.
_INITIALIZER: Final = partial(initializers.normal, std=0.02)


class PositionalEncoding(OpLayer):
    """y_t = x_t + P_t with the sines and cosines of `hg.ops.positional_encoding`; no parameters."""

    op = positional_encoding

    def __init__(self, *, base: float = 10000.0) -> None:
        self.base = base

    @in_own_type
    def forward(self, x: Array, *, offset: int = 0, training: bool = False) -> tuple[Array, Any]:
        """`offset` is the position of the first step, for decoding step by step."""
        return positional_encoding.forward(x, offset=offset, base=self.base)

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 2:
            raise ShapeError(
                f"PositionalEncoding: an example has shape {input_shape}; allowed: (T, D)"
            )
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        return math.prod(input_shape)


class LearnedPositions(Layer):
    """y_t = x_t + P_t with a learned row of `weight` (length, features) for every position t."""

    parameter_names = ("weight",)
    op: ModuleType = embedding

    def __init__(
        self,
        length: int,
        features: InputSize,
        *,
        rng: np.random.Generator = FROM_SEED,
        initializer: Initializer = _INITIALIZER,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.length = length
        self.features = features
        self.initializer = initializer
        self.weight = initializer((length, features), rng, dtype=dtype)

    @in_own_type
    def forward(self, x: Array, *, offset: int = 0, training: bool = False) -> tuple[Array, Any]:
        """y (N, T, features) of such an x; `offset` is the position of the first step, in decoding.

        Raises ShapeError for another x, ArgumentError for positions beyond the table.
        """
        if len(x.shape) != 3 or x.shape[2] != self.features:
            raise ShapeError(
                f"LearnedPositions: x has shape {tuple(x.shape)}; allowed: (N, T, {self.features})"
            )
        self._check_positions(offset, x.shape[1])
        xp = array_namespace(self.weight)
        positions = xp.arange(offset, offset + x.shape[1])
        p, cache = embedding.forward(positions, self.weight)
        return x + p, cache

    def backward(
        self,
        dy: Array,
        cache: Any,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        xp = array_namespace(dy)
        if "weight" in self.frozen:
            gradients = {} if gradients is None else gradients
        elif gradients is None:
            gradients = {"weight": self.op.backward(xp.sum(dy, axis=0), cache)}
        else:
            self.op.backward(xp.sum(dy, axis=0), cache, out=(gradients["weight"],))
        return dy if input_gradient else None, gradients

    def _check_positions(self, offset: int, steps: int) -> None:
        if not 0 <= offset <= self.length - steps:
            raise ShapeError(
                f"LearnedPositions: x has {steps} steps from position {offset} on; "
                f"allowed: positions 0 to {self.length - 1}"
            )

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 2 or input_shape[1] != self.features:
            raise ShapeError(
                f"LearnedPositions: an example has shape {input_shape}; "
                f"allowed: (T, {self.features})"
            )
        self._check_positions(0, input_shape[0])
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        return math.prod(input_shape)
