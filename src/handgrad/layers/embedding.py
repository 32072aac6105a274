"""Embedding: a learned row for every token."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.dispatch import KernelCache
from handgrad.initializers import Initializer
from handgrad.layers.base import Layer, Shape
from handgrad.layers.construction import FROM_SEED
from handgrad.layers.inputs import in_own_type
from handgrad.ops import embedding


class Embedding(Layer):
    """Rows of `weight` (tokens, features) by number, N(0, 1) at first as in PyTorch.

    Tokens have no gradient: dx is always None.
    """

    parameter_names = ("weight",)
    takes_tokens = True
    forward_capturable = True
    op: ModuleType = embedding

    def __init__(
        self,
        tokens: int,
        features: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        padding_idx: int | None = None,
        initializer: Initializer = initializers.normal,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.features = features
        self.padding_idx = padding_idx
        self.initializer = initializer
        self.weight = initializer((tokens, features), rng, dtype=dtype)
        if padding_idx is not None:
            self.weight[padding_idx] = 0.0

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        return embedding.forward(x, self.weight, padding_idx=self.padding_idx)

    def backward(
        self,
        dy: Array,
        cache: Any,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[None, Mapping[str, Array]]:
        if "weight" in self.frozen:
            return None, {} if gradients is None else gradients
        if gradients is None:
            return None, {"weight": self.op.backward(dy, cache)}
        self.op.backward(dy, cache, out=(gradients["weight"],))
        return None, gradients

    def add_gradient(self, dy: Array, cache: Any, dweight: Array) -> Array:
        """`dweight` with the gradient added, for a table that the model uses elsewhere too.

        An array of NumPy is written to: only the rows of tokens that occur are touched, so a large
        table costs no more than a small one.
        """
        if not isinstance(dweight, np.ndarray):
            return dweight + self.op.backward(dy, cache)
        if type(cache) is KernelCache and dy.flags.carray and dweight.flags.carray:
            from handgrad.kernels.embedding import add_gradient  # there is one: it made the cache

            add_gradient(dy, cache.kept, dweight)
            return dweight
        tokens = cache.tokens.reshape(-1)
        order = np.argsort(tokens, kind="stable")
        used, starts = np.unique(tokens[order], return_index=True)
        sums = np.add.reduceat(dy.reshape(-1, self.features)[order], starts, axis=0)
        if self.padding_idx is not None:
            sums[used == self.padding_idx % len(self.weight)] = 0.0
        dweight[used] += sums
        return dweight

    def output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape, self.features)

    def flops(self, input_shape: Shape) -> int:
        return 0
