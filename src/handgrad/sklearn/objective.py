"""The number that training lowers, loss and penalty on the weights, and its gradients."""

from __future__ import annotations

import numpy as np
from scipy.linalg import get_blas_funcs

from handgrad.arrays import Array
from handgrad.layers import Layer
from handgrad.losses import Loss
from handgrad.training.step import TrainingStep


class Objective:
    """J = Σᵢ cᵢ lᵢ + (α/2W) Σ w² over a batch, and ∂J/∂p in `gradients`.

    c are the coefficients that come with the targets, W what the examples of the batch weigh
    together; the penalty is on all parameters of two axes or more, so on no bias. `model` ends in
    what the loss takes; its parameters move into one buffer, `parameters`. Of the sum of the losses
    the share `reported` is in the value that a call returns, and all of it in the gradients.
    """

    def __init__(self, model: Layer, loss: Loss, alpha: float, reported: float = 1.0) -> None:
        self._reported = reported
        self.parameters = model.bind()
        self.gradients = self.parameters.zeros_like()
        self._step = TrainingStep(model, loss, self.gradients)
        strengths = self.parameters.zeros_like()
        for array in strengths.values():
            array[...] = alpha if array.ndim > 1 else 0.0
        self._strengths = strengths.buffer if alpha > 0 else None
        self._penalty = np.empty_like(strengths.buffer)
        self._add = get_blas_funcs("axpy", (self._penalty,))  # y += a x, in place

    def __call__(
        self, inputs: tuple[Array, ...], targets: tuple[Array, ...], weight: float
    ) -> float:
        value = self._reported * float(self._step(inputs, targets))
        if self._strengths is not None:
            parameters, penalty = self.parameters.buffer, self._penalty
            np.multiply(self._strengths, parameters, out=penalty)
            value += 0.5 / weight * float(penalty.dot(parameters))
            self._add(penalty, self.gradients.buffer, a=1.0 / weight)
        return value
