"""A training as its parts see it: what was asked for, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import RunError
from handgrad.inference.preprocessing import Preprocessor
from handgrad.io.checkpoint import load_model_arrays
from handgrad.layers.base import Layer
from handgrad.layers.flat import FlatArrays
from handgrad.optimizers import Optimizer
from handgrad.training.augmentation import Augmentation
from handgrad.training.callbacks import Callback
from handgrad.training.folder import Run
from handgrad.training.history import History
from handgrad.training.replicas import Replicas


class Training:
    """The settings and counters of a training; see `Trainer`, which sets them and moves them on."""

    model: Layer
    loss: Any
    optimizer: Optimizer
    preprocessing: tuple[str | Preprocessor, ...]
    schedule: Callable[[int], float] | None
    clip_norm: float | None
    accumulate: int
    batch_size: int
    parts: int
    exact: bool
    sync_batch_norm: bool
    replicas: Replicas
    seed: int
    callbacks: tuple[Callback, ...]
    augment: Augmentation | None
    precision: str
    backend: str
    devices: int
    evaluation_batch: int

    parameters: FlatArrays
    gradients: FlatArrays
    history: History
    step: int
    epoch: int
    stop: bool
    seconds: float
    _run: Run | None

    @property
    def model_dtype(self) -> np.dtype[Any]:
        """The type of the model's numbers."""
        arrays = self.model.parameters.values()
        return next((array.dtype for array in arrays), np.dtype(np.float32))

    def model_arrays(self) -> dict[str, Array]:
        """Parameters and buffers together, without frozen parameters: what training can change."""
        frozen = self.model.frozen_parameters
        arrays = {**self.model.parameters, **self.model.buffers}
        return {name: array for name, array in arrays.items() if name not in frozen}

    def load_model_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Put `model_arrays()` back. Raises an error for a missing, unknown or mis-shaped array."""
        load_model_arrays(self.model, {**self.model.frozen_parameters, **arrays})

    def diverged(self, what: str) -> RunError:
        """The error for `what` is not finite in this step: how to go on from before."""
        lr = f"{self.optimizer.lr / 10:g}"
        run = self._run
        way = f"continue from the last checkpoint with: {run.change_command}" if run else ""
        advice = f"; {way.format(lr=lr)}" if way else f", such as lr={lr}"
        return RunError(
            f"training: {what}; a smaller learning rate or clip_norm usually prevents this{advice}"
        )

    def gradients_diverged(self, layer: str) -> RunError:
        """The error for a gradient of this layer that is not finite, the first on its way."""
        return self.diverged(
            f"the gradient of the layer {layer} is not finite at step {self.step + 1} "
            f"(epoch {self.epoch + 1})"
        )
