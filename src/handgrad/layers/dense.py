"""Dense: every output depends on every input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.initializers import Initializer
from handgrad.layers.base import OpLayer, Shape, activation_options
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.inputs import in_own_type
from handgrad.ops import dense
from handgrad.ops.activation import check_activation


class Dense(OpLayer):
    """h = f(x Wᵀ + b) on the last axis, with weight (out, in) as PyTorch keeps it.

    Without `initializer` the weight is He uniform for ReLU and its relatives and Xavier uniform for
    every other activation (`initializers.for_activation`); the bias starts at 0. `negative_slope`
    belongs to leaky_relu and `approximate` to gelu.
    """

    parameter_names = ("weight", "bias")
    op = dense
    capturable = True
    adds_residual_forward = True
    adds_residual_backward = True

    def __init__(
        self,
        in_features: InputSize,
        out_features: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        bias: bool = True,
        activation: str = "identity",
        negative_slope: float = 0.01,
        approximate: str = "none",
        initializer: Initializer | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        check_activation("Dense", activation, approximate)
        self.initializer = initializer or initializers.for_activation(activation)
        self.in_features: int = in_features
        self.out_features = out_features
        self.options = activation_options(activation, negative_slope, approximate)
        self.weight = self.initializer((out_features, in_features), rng, dtype=dtype)
        self.bias = np.zeros(out_features, dtype=dtype) if bias else None

    @in_own_type
    def forward(
        self, x: Array, *, training: bool = False, residual: Array | None = None
    ) -> tuple[Array, Any]:
        return dense.forward(  # type: ignore[call-arg]
            x, self.weight, self.bias, **self.options, residual=residual
        )

    def output_shape(self, input_shape: Shape) -> Shape:
        if not input_shape or input_shape[-1] != self.in_features:
            raise ShapeError(
                f"Dense: an example has shape {input_shape}; allowed: (..., {self.in_features})"
            )
        return (*input_shape[:-1], self.out_features)

    def flops(self, input_shape: Shape) -> int:
        outputs = math.prod(self.output_shape(input_shape))
        return outputs * (2 * self.in_features + (self.bias is not None))
