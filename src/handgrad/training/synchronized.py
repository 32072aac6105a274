"""Batch normalisation over the batch of all ranks: the op's own lines, with sums over the ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.layers import BatchNorm, Layer
from handgrad.layers.base import walk
from handgrad.ops import batch_norm
from handgrad.ops.activation import activate, activation_gradient
from handgrad.training.replicas import Replicas


class Cache(NamedTuple):
    """As the op's, with the number of values that a channel has on all ranks."""

    x_hat: Array
    inv_std: Array
    gamma: Array
    a: Array
    values: float
    running_mean: Array
    running_var: Array
    activation: str


class SynchronizedBatchNorm:
    """Takes the place of `ops.batch_norm` in layers whose statistics are those of all ranks.

    Forward adds Σ x and then Σ (x − μ)² over the ranks, backward Σ dx̂ and Σ dx̂ x̂; dγ and dβ are
    those of this rank's examples, as all gradients are before they are reduced. Every rank calls
    both in every step, also with no examples.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._ranks = replicas

    def __deepcopy__(self, memo: dict[int, Any]) -> SynchronizedBatchNorm:
        return self

    def forward(
        self,
        x: Array,
        gamma: Array,
        beta: Array,
        running_mean: Array,
        running_var: Array,
        *,
        training: bool,
        momentum: float,
        eps: float,
        activation: str,
    ) -> tuple[Array, Any]:
        """As the op's forward, in training with μ and σ² over the examples of all ranks."""
        if not training:
            return batch_norm.forward(
                x,
                gamma,
                beta,
                running_mean,
                running_var,
                training=False,
                eps=eps,
                activation=activation,
            )
        axes = (0, *range(2, x.ndim))
        channels = (1, -1, *(1 for _ in axes[1:]))
        total = np.append(x.sum(axis=axes, dtype=np.float64), x.size // max(x.shape[1], 1))
        self._ranks.add(total)
        values = max(total[-1], 1.0)
        mean = total[:-1] / values
        centred = x - mean.astype(x.dtype).reshape(channels)
        squares = np.square(centred).sum(axis=axes, dtype=np.float64)
        self._ranks.add(squares)
        variance = squares / values
        rate = momentum if total[-1] > 0 else 0.0
        unbiased = variance * (values / max(values - 1, 1))
        inv_std = (1.0 / np.sqrt(variance + eps)).astype(x.dtype).reshape(channels)
        x_hat = centred * inv_std
        a = gamma.reshape(channels) * x_hat + beta.reshape(channels)
        cache = Cache(
            x_hat,
            inv_std,
            gamma,
            a,
            values,
            (1.0 - rate) * running_mean + rate * mean,
            (1.0 - rate) * running_var + rate * unbiased,
            activation,
        )
        return activate(a, activation), cache

    def backward(
        self, dy: Array, cache: Any, out: tuple[Any, Any, Any] = (None, None, None)
    ) -> tuple[Any, Array, Array]:
        """As the op's backward, with the means over the examples of all ranks."""
        if not isinstance(cache, Cache):
            return batch_norm.backward(dy, cache, out=out)  # type: ignore[call-arg]
        x_hat, inv_std, gamma, a, values, _, _, activation = cache
        axes = (0, *range(2, dy.ndim))
        da = activation_gradient(dy, a, activation)
        dgamma = np.sum(da * x_hat, axis=axes)
        dbeta = np.sum(da, axis=axes)
        sums = np.stack((dbeta, dgamma)).astype(np.float64)
        self._ranks.add(sums)
        mean_da, mean_da_x_hat = (sums / values).astype(dy.dtype).reshape(2, *inv_std.shape)
        dx = gamma.reshape(inv_std.shape) * (da - mean_da - x_hat * mean_da_x_hat) * inv_std
        for target, values_found in zip(out[1:], (dgamma, dbeta), strict=True):
            if target is not None and target is not SKIP:
                target[...] = values_found
        return (None if out[0] is SKIP else dx), dgamma, dbeta


def synchronize(model: Layer, replicas: Replicas) -> None:
    """Let every batch normalisation of the model take its statistics over all ranks, in place."""
    op = SynchronizedBatchNorm(replicas)
    for _, layer in walk(model):
        if isinstance(layer, BatchNorm):
            layer.op = op  # type: ignore[assignment]
