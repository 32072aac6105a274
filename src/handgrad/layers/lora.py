"""LoRADense: a Dense layer whose weight stays, beside a product of two small matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.errors import ArgumentError
from handgrad.kernels.sums import add
from handgrad.layers.activation import Activation
from handgrad.layers.base import Layer, Shape
from handgrad.layers.construction import FROM_SEED
from handgrad.layers.dense import Dense
from handgrad.layers.inputs import in_own_type
from handgrad.ops import dense as dense_op
from handgrad.ops import dropout as dropout_op


class Cache(NamedTuple):
    """The caches of the steps in the order of forward; the activation's is None without one."""

    dropout: Any
    down: Any
    base: Any
    up: Any
    activation: Any


class LoRADense(Layer):
    """h = f(x Wᵀ + b + s z Aᵀ Bᵀ) with z = dropout(x) and s = alpha/rank, in the place of a Dense.

    Backward: da = dh f′(a),  du = s da B,  dB = s Σ daᵀ (z Aᵀ),  dA = Σ duᵀ z,
              dx = da W + dropout′(du A)   (sums over the batch's rows)

    W and b are the arrays of `dense`, under the same names and frozen; A is `lora_a` (rank, in) and
    starts at U(−1/√in, 1/√in), B is `lora_b` (out, rank) and starts at 0, so that h is that of
    `dense` at first. `dropout` draws from `rng` in training.

    Raises ArgumentError for a rank outside 1 to the smaller size of W, or a dropout outside 0 to 1.
    Source: Hu et al., LoRA: low-rank adaptation of large language models (2021), section 4.1, with
    the first values of the package peft.
    """

    parameter_names = ("weight", "bias", "lora_a", "lora_b")
    generator_names = ("rng",)
    adds_residual_backward = True
    op: ModuleType = dense_op

    def __init__(
        self,
        dense: Dense,
        *,
        rank: int = 8,
        alpha: float = 16.0,
        dropout: float = 0.0,
        rng: np.random.Generator = FROM_SEED,
    ) -> None:
        self.out_features, self.in_features = dense.weight.shape
        most = min(dense.weight.shape)
        if not 1 <= rank <= most:
            raise ArgumentError(f"LoRADense: rank is {rank}; allowed: 1 to {most}, of the weight")
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"LoRADense: dropout is {dropout}; allowed: 0 to 1")
        self.dense = dense
        self.scale = alpha / rank
        self.dropout = dropout
        self.rng = rng if dropout > 0 else None
        options = dict(dense.options)
        activation = options.pop("activation")
        self.activation = None if activation == "identity" else Activation(activation, **options)
        self.weight, self.bias = dense.weight, dense.bias
        dtype, bound = self.weight.dtype, 1 / math.sqrt(self.in_features)
        shape = (rank, self.in_features)
        self.lora_a = initializers.uniform(shape, rng, bound=bound, dtype=dtype)
        self.lora_b = np.zeros((self.out_features, rank), dtype)
        self.frozen = ("weight", "bias")

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Cache]:
        z, dropped = dropout_op.forward(x, self.dropout, self.rng, training=training)
        u, down = self.op.forward(z, self.lora_a)
        base, of_base = self.op.forward(x, self.weight, self.bias)
        h, up = self.op.forward(self.scale * u, self.lora_b, residual=base)
        activated = None
        if self.activation is not None:
            h, activated = self.activation.forward(h)
        return h, Cache(dropped, down, of_base, up, activated)

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
        residual: Array | None = None,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        da: Any = dy
        if self.activation is not None:
            da, _ = self.activation.backward(dy, cache.activation)
        out = self._buffers(gradients, input_gradient)
        du, dlora_b, _ = self.op.backward(da, cache.up, out=(None, out["lora_b"], SKIP))
        dz, dlora_a, _ = self.op.backward(
            self.scale * du, cache.down, out=(out["z"], out["lora_a"], SKIP)
        )
        if input_gradient:
            dz = dropout_op.backward(dz, cache.dropout)
            residual = dz if residual is None else add(residual, dz)
        dx, dweight, dbias = self.op.backward(
            da, cache.base, out=(out["z"], out["weight"], out["bias"]), residual=residual
        )
        if gradients is None:
            found = {"weight": dweight, "bias": dbias, "lora_a": dlora_a, "lora_b": dlora_b}
            gradients = {name: found[name] for name in self.parameters}
        return dx, gradients

    def _buffers(
        self, gradients: Mapping[str, Array] | None, input_gradient: bool
    ) -> dict[str, Any]:
        """The entries of `out` for every gradient: SKIP for one that is not wanted."""
        wanted = self.parameters
        out: dict[str, Any] = {"z": None if input_gradient else SKIP}
        for name in self.parameter_names:
            out[name] = SKIP if name not in wanted else (gradients or {}).get(name)
        return out

    def merged(self) -> Dense:
        """The Dense layer with W + s B A in the place of W, which is written over."""
        self.weight += self.scale * (self.lora_b @ self.lora_a)
        self.dense.weight, self.dense.bias = self.weight, self.bias
        return self.dense

    def output_shape(self, input_shape: Shape) -> Shape:
        return self.dense.output_shape(input_shape)

    def flops(self, input_shape: Shape) -> int:
        """Those of the Dense layer and of the two small products."""
        rows = math.prod(self.output_shape(input_shape)[:-1])
        own = self.lora_a.size + self.lora_b.size
        return self.dense.flops(input_shape) + 2 * rows * own

    def input_flops(self, input_shape: Shape) -> int:
        rows = math.prod(self.output_shape(input_shape)[:-1])
        return self.dense.input_flops(input_shape) + 2 * rows * self.lora_a.size
