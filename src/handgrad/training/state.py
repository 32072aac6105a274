"""The state of a training: all that changes while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from handgrad import dispatch
from handgrad.arrays import Array
from handgrad.inference.preprocessing import Preprocessor
from handgrad.inference.trained import TrainedModel
from handgrad.io.checkpoint import generator_state, load_model_arrays
from handgrad.layers.flat import FlatArrays
from handgrad.optimizers import Optimizer
from handgrad.training.callbacks import Callback
from handgrad.training.choices import (
    check_augmentation,
    chosen_callbacks,
    chosen_loss,
    chosen_optimizer,
    chosen_steps,
)
from handgrad.training.folder import Run
from handgrad.training.history import History
from handgrad.training.metrics import Sums
from handgrad.training.settings import TrainArguments


class TrainState(TrainArguments):
    """A training as the functions over it see it; to its user and to callbacks it is `Trainer`.

    Settings stay as they were given, except those declared again here: they are chosen by name, or
    callbacks may change them. The others are numbers, arrays and generators that every step moves.
    """

    # Those that are frozen are so for type checkers; whatever a callback sets is its own affair.
    __setattr__ = object.__setattr__

    optimizer: Optimizer
    preprocessing: tuple[str | Preprocessor, ...]
    callbacks: tuple[Callback, ...]
    precision: str
    loss: Any
    schedule: Callable[[int], float] | None
    clip_norm: float | None
    accumulate: int
    batch_size: int
    evaluation_batch: int
    out: str | Path | Run | None

    #: The parameters are there once the model is built, gradients after a step of "numpy".
    parameters: FlatArrays
    gradients: FlatArrays

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loss = chosen_loss(self.loss)
        self.optimizer = chosen_optimizer(self.optimizer, self.lr)
        self.preprocessing = chosen_steps(self.preprocessing)
        self.callbacks = chosen_callbacks(self.callbacks)
        check_augmentation(self.augment)
        self.precision = self.precision or dispatch.get_precision()
        if self.model.is_built:
            self.parameters = self.model.bind()
        self.step = 0
        self.shuffling, self.augmenting = (
            np.random.Generator(np.random.PCG64(stream))
            for stream in np.random.SeedSequence(self.seed).spawn(2)
        )
        #: Entries of `TrainedModel` that the data say.
        self.data_about: dict[str, Any] = {}
        #: The folder of the run, while there is one.
        self.run: Run | None = None
        self.begin()

    def begin(self) -> None:
        """Set everything that a call of `fit` counts from its start."""
        self.history = History()
        #: Whole epochs, and the examples of the one that has begun.
        self.epoch = self.position = 0
        self.sums = Sums()
        self.stop = False
        self.seconds = 0.0
        #: The generator and the sizes of batches as the epoch began with them.
        self.shuffling_before = generator_state(self.shuffling)
        self.epoch_sizes: dict[str, int] = {}

    @property
    def trained(self) -> TrainedModel:
        """The model with what belongs to its use; `hg.load` of the run's folder gives the same."""
        return TrainedModel(self.model, **{**self.data_about, **(self.about or {})})

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
