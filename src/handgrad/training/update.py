"""One step of a training: the gradients of its examples, clipped, and the optimizer's update."""

from __future__ import annotations

import math
from typing import Protocol

from handgrad.arrays import Array
from handgrad.data.sources import Source
from handgrad.optimizers import Optimizer, clipping_factor, global_norm
from handgrad.training.divergence import gradients_diverged, layer_of
from handgrad.training.gradients import StepGradients
from handgrad.training.metrics import Sums, layer_norms
from handgrad.training.parts import PartGradients
from handgrad.training.state import TrainState


class Update(Protocol):
    """What a backend does for a training; the loop around it is the same for all."""

    def __call__(
        self, source: Source, index: Array, sums: Sums, rate: float, *, wants_norms: bool
    ) -> dict[str, float]:
        """Learn from the examples at `index` at this rate, counting them in `sums`.

        Returns each layer's norm of its gradients, where these are wanted. Raises RunError where
        loss or gradients are not finite.
        """

    def publish(self) -> None:
        """Bring the model and the optimizer to where the last step has come."""


class NumpyUpdate:
    """The update in place, by kernels or references on NumPy arrays, as `hg.engine` says."""

    def __init__(self, state: TrainState, optimizer: Optimizer) -> None:
        self._state = state
        self._optimizer = optimizer
        kind = StepGradients if state.parts == 1 else PartGradients
        self._gradients_of = kind(state, state.augmenting)

    def __call__(
        self, source: Source, index: Array, sums: Sums, rate: float, *, wants_norms: bool
    ) -> dict[str, float]:
        state = self._state
        state.gradients = self._gradients_of(source, index, sums)
        norms = layer_norms(state.gradients) if wants_norms else {}
        if not all(map(math.isfinite, norms.values())):
            self._check_gradients()
        scale = 1.0
        if state.clip_norm is not None:
            norm = global_norm(state.gradients)
            if not math.isfinite(norm):
                self._check_gradients()
            scale = clipping_factor(norm, state.clip_norm)
        self._optimizer.step(state.parameters, state.gradients, rate, scale=scale)
        return norms

    def publish(self) -> None:
        """Nothing is left to do: the update has been in place."""

    def _check_gradients(self) -> None:
        """Raise RunError where a gradient is not finite; its layer is the one where that began."""
        layer = layer_of(self._state.gradients)
        if layer is not None:
            raise gradients_diverged(self._state, layer)


def chosen_update(state: TrainState, optimizer: Optimizer) -> Update:
    """The update of the training's backend; `optimizer` is that of all its replicas."""
    if state.backend == "jax":
        from handgrad.training.on_jax import JaxUpdate

        return JaxUpdate(state)
    return NumpyUpdate(state, optimizer)
