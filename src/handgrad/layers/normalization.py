"""Normalisation layers: over a row's features, a channel of the batch, or groups of channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import DTypeLike

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers.base import OpLayer, Shape
from handgrad.layers.construction import InputSize
from handgrad.layers.inputs import in_own_type
from handgrad.ops import batch_norm, group_norm, layer_norm, rms_norm
from handgrad.ops.activation import check_activation


class _RowNorm(OpLayer):
    """Shared parts of LayerNorm and RMSNorm: rows of one size along the last axis."""

    flops_per_value: int

    def __init__(
        self, features: InputSize, *, eps: float = 1e-5, dtype: DTypeLike = np.float32
    ) -> None:
        self.features = features
        self.eps = eps
        self.gamma = np.ones(features, dtype=dtype)

    def output_shape(self, input_shape: Shape) -> Shape:
        if not input_shape or input_shape[-1] != self.features:
            raise ShapeError(
                f"{type(self).__name__}: an example has shape {input_shape}; "
                f"allowed: (..., {self.features})"
            )
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        return self.flops_per_value * math.prod(input_shape)


class LayerNorm(_RowNorm):
    """y = γ (x − μ)/√(σ² + ε) + β over the last axis; γ starts at 1 and β at 0.

    With bias=False, β is 0 throughout and no parameter, as in PyTorch.
    """

    parameter_names = ("gamma", "beta")
    op = layer_norm
    flops_per_value = 7
    capturable = True
    adds_residual_backward = True

    def __init__(
        self,
        features: InputSize,
        *,
        eps: float = 1e-5,
        bias: bool = True,
        dtype: DTypeLike = np.float32,
    ) -> None:
        super().__init__(features, eps=eps, dtype=dtype)
        self.beta = np.zeros(features, dtype=dtype) if bias else None

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        xp = array_namespace(self.gamma)
        beta = xp.zeros_like(self.gamma) if self.beta is None else self.beta
        return layer_norm.forward(x, self.gamma, beta, eps=self.eps)


class RMSNorm(_RowNorm):
    """y = γ x/√(mean(x²) + ε) over the last axis; γ starts at 1."""

    parameter_names = ("gamma",)
    op = rms_norm
    flops_per_value = 4
    capturable = True
    adds_residual_backward = True

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        return rms_norm.forward(x, self.gamma, eps=self.eps)


class BatchNorm(OpLayer):
    """y = γ (x − μ)/√(σ² + ε) + β per channel of (N, C, …), then an activation; γ starts at 1 and β
    at 0.

    In training μ and σ² are those of the batch, and forward moves the buffers `running_mean` and
    `running_var` towards them by `momentum`; at inference the buffers stand in for them. This is
    the one forward that writes to its layer's arrays.
    """

    parameter_names = ("gamma", "beta")
    buffer_names = ("running_mean", "running_var")
    op = batch_norm
    forward_capturable = True

    def __init__(
        self,
        channels: InputSize,
        *,
        momentum: float = 0.1,
        eps: float = 1e-5,
        activation: str = "identity",
        dtype: DTypeLike = np.float32,
    ) -> None:
        check_activation("BatchNorm", activation)
        self.channels = channels
        self.momentum = momentum
        self.eps = eps
        self.activation = activation
        self.gamma = np.ones(channels, dtype=dtype)
        self.beta = np.zeros(channels, dtype=dtype)
        self.running_mean: Array = np.zeros(channels, dtype=dtype)
        self.running_var = np.ones(channels, dtype=dtype)

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        y, cache = self.op.forward(
            x,
            self.gamma,
            self.beta,
            self.running_mean,
            self.running_var,
            training=training,
            momentum=self.momentum,
            eps=self.eps,
            activation=self.activation,
        )
        if training:
            self._keep_running(cache.running_mean, cache.running_var)
        return y, cache

    def _keep_running(self, mean: Array, var: Array) -> None:
        """Write the running statistics; arrays that cannot be written to are replaced."""
        if isinstance(self.running_mean, np.ndarray):
            self.running_mean[...] = mean
            self.running_var[...] = var
        else:
            self.running_mean, self.running_var = mean, var

    def output_shape(self, input_shape: Shape) -> Shape:
        if not input_shape or input_shape[0] != self.channels:
            raise ShapeError(
                f"BatchNorm: an example has shape {input_shape}; allowed: ({self.channels}, ...)"
            )
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        """As at inference: subtract, divide, scale, shift."""
        return 4 * math.prod(input_shape)


class GroupNorm(OpLayer):
    """y = γ (x − μ)/√(σ² + ε) + β of (N, C, …), μ and σ² those of a group of neighbouring channels
    of an example; γ starts at 1 and β at 0.
    """

    parameter_names = ("gamma", "beta")
    op = group_norm
    capturable = True

    def __init__(
        self,
        num_groups: int,
        channels: InputSize,
        *,
        eps: float = 1e-5,
        dtype: DTypeLike = np.float32,
    ) -> None:
        if num_groups < 1 or channels % num_groups != 0:
            raise ArgumentError(
                f"{type(self).__name__}: num_groups is {num_groups}; allowed: a divisor of "
                f"{channels}, the number of channels"
            )
        self.num_groups = num_groups
        self.channels = channels
        self.eps = eps
        self.gamma = np.ones(channels, dtype=dtype)
        self.beta = np.zeros(channels, dtype=dtype)

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        return group_norm.forward(
            x, self.gamma, self.beta, num_groups=self.num_groups, eps=self.eps
        )

    def output_shape(self, input_shape: Shape) -> Shape:
        if not input_shape or input_shape[0] != self.channels:
            raise ShapeError(
                f"{type(self).__name__}: an example has shape {input_shape}; "
                f"allowed: ({self.channels}, ...)"
            )
        return input_shape

    def flops(self, input_shape: Shape) -> int:
        return 7 * math.prod(input_shape)


class InstanceNorm(GroupNorm):
    """GroupNorm in which each channel is a group: y = γ (x − μ)/√(σ² + ε) + β over the positions of
    every channel of every example.
    """

    capturable = True

    def __init__(
        self, channels: InputSize, *, eps: float = 1e-5, dtype: DTypeLike = np.float32
    ) -> None:
        super().__init__(channels, channels, eps=eps, dtype=dtype)
