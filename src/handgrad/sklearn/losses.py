"""Output layer and loss that scikit-learn's perceptrons need beyond those of handgrad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.layers import Layer
from handgrad.layers.inputs import in_own_type
from handgrad.losses import Loss
from handgrad.losses.base import Cache
from handgrad.ops import linear


class TwoScores(Layer):
    """Scores (..., 2) of no and yes for logits z (...): (0, z).

    Since softmax(0, z) = (1 − σ(z), σ(z)), cross-entropy of the two is the logistic loss of z.
    """

    capturable = True

    def __init__(self, dtype: Any) -> None:
        self._column = np.array([[0], [1]], dtype=dtype)

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        scores, cache = linear.forward(x.reshape(-1, 1), self._column)
        return scores.reshape(*x.shape, 2), cache

    def backward(
        self,
        dy: Array,
        cache: Any,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        dx: Any = linear.backward(  # type: ignore[call-arg]
            dy.reshape(-1, 2), cache, out=(None, SKIP, SKIP)
        )[0]
        return dx.reshape(dy.shape[:-1]), {} if gradients is None else gradients

    def output_shape(self, input_shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*input_shape, 2)

    def flops(self, input_shape: tuple[int, ...]) -> int:
        return 0


class Poisson(Loss):
    """Half the deviance of Poisson counts t from predictions exp(z), each times a weight.

    Forward:  L = Σ wᵢ (tᵢ log tᵢ − tᵢ zᵢ − tᵢ + exp zᵢ), with 0 log 0 = 0
    Backward: dL/dzᵢ = wᵢ (exp zᵢ − tᵢ)
    """

    def __init__(self) -> None:
        super().__init__()

    def forward(self, y: Array, target: Array, weight: Array | None = None) -> tuple[Array, Cache]:
        with np.errstate(over="ignore"):
            predicted = np.exp(y)
        logarithms = np.log(np.where(target > 0, target, 1))
        losses = target * (logarithms - y - 1) + predicted
        slope = predicted - target
        if weight is not None:
            losses, slope = weight * losses, weight * slope
        loss = np.sum(losses)
        return loss, Cache(slope, loss)

    def backward(
        self, cache: Cache, dloss: Array | None = None, *, out: Array | None = None
    ) -> Array:
        dy: Array = cache.op if dloss is None else dloss * cache.op
        return dy
