"""Callbacks: actions of a caller during training, and reasons to stop it early."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, RunError
from handgrad.lora.files import save
from handgrad.paths import as_path

if TYPE_CHECKING:
    from handgrad import Trainer  # from its stub, for training is built on callbacks


class Callback:
    """Base class: override what you need.

    `trainer` is the `hg.Trainer`: `trainer.model`, `.step`, `.epoch` and `.history` are there to
    read; `trainer.stop = True` ends the training after the current epoch. Its attributes survive a
    resumption where they are plain values and arrays. A callback with another memory returns it
    from `state` (plain JSON values) and `arrays`, and takes it back in `restore`.
    """

    def on_start(self, trainer: Trainer) -> None:
        """Before the first step; also when a run is resumed, after `restore`.

        Then what it sets of the trainer is put back to where the run was.
        """

    def on_step(self, trainer: Trainer) -> None:
        """After each optimizer step."""

    def on_epoch(self, trainer: Trainer, record: Mapping[str, float]) -> None:
        """After each epoch, with its line of metrics.jsonl."""

    def on_end(self, trainer: Trainer) -> None:
        """After the last step, before the model is saved."""

    def settings(self) -> Mapping[str, object]:
        """The settings that must be the same when a run is resumed.

        Without this method they are the attributes that its methods read as they act on a trainer.
        """
        return {}

    def state(self) -> Mapping[str, object]:
        """Its state in a checkpoint, plain JSON values."""
        return {}

    def arrays(self) -> dict[str, Array]:
        """Its state in a checkpoint, arrays by name."""
        return {}

    def restore(self, state: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
        """Take back what `state` and `arrays` returned when the checkpoint was written."""


class EarlyStopping(Callback):
    """Stop when `monitor` has not improved for `patience` epochs, and keep the best weights.

    With a patience of None it never stops, and only keeps them. A monitor whose name ends in "loss"
    should fall, any other should rise; an improvement is a change of more than `minimum_change`. A
    value that is not finite is no improvement.
    """

    def __init__(
        self,
        patience: int | None,
        *,
        monitor: str = "validation_loss",
        minimum_change: float = 0.0,
        restore_best: bool = True,
    ) -> None:
        if patience is not None and patience < 1:
            raise ArgumentError(
                f"EarlyStopping: patience is {patience}; allowed: at least 1, or None"
            )
        self.patience = patience
        self.monitor = monitor
        self.minimum_change = minimum_change
        self.restore_best = restore_best
        self._best: float | None = None
        self._epoch = self._waited = 0
        self._weights: dict[str, Array] = {}

    def on_epoch(self, trainer: Trainer, record: Mapping[str, float]) -> None:
        value = record.get(self.monitor)
        if value is None:
            numbers = [key for key, found in record.items() if isinstance(found, float)]
            raise ArgumentError(
                f"EarlyStopping: monitor is {self.monitor!r}, which this training does not "
                f"measure; allowed: {', '.join(numbers)}"
            )
        if self._is_better(value):
            self._best = value
            self._epoch, self._waited = trainer.epoch, 0
            if self.restore_best:
                self._weights = {name: np.array(a) for name, a in trainer.model_arrays().items()}
        else:
            self._waited += 1
            if self.patience is not None and self._waited >= self.patience:
                trainer.stop = True

    def _is_better(self, value: float) -> bool:
        if not math.isfinite(value):
            return False
        if self._best is None:
            return True
        falls = self.monitor.endswith("loss")
        return (self._best - value if falls else value - self._best) > self.minimum_change

    @property
    def kept_epoch(self) -> int | None:
        """The epoch whose weights are kept, counted from 1; None where none are."""
        return (self._epoch or None) if self._weights else None

    def on_end(self, trainer: Trainer) -> None:
        if self._weights:
            trainer.load_model_arrays(self._weights)

    def state(self) -> Mapping[str, object]:
        return {"best": self._best, "epoch": self._epoch, "waited": self._waited}

    def arrays(self) -> dict[str, Array]:
        return self._weights

    def settings(self) -> Mapping[str, object]:
        names = ("patience", "monitor", "minimum_change", "restore_best")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
        match {"epoch": 0, **state}:  # a folder of before this state had an epoch resumes
            case {
                "best": int() | float() | None as best,
                "epoch": int(epoch),
                "waited": int(waited),
            }:
                self._best, self._epoch, self._waited = best, epoch, waited
            case _:
                raise RunError(
                    f"checkpoint: EarlyStopping has {dict(state)}; expected best, epoch and waited"
                )
        self._weights = dict(arrays)


class SaveAdapter(Callback):
    """At the end writes the model's adapter into `folder`, in the files of `handgrad.lora`."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = as_path("SaveAdapter", folder)

    def on_end(self, trainer: Trainer) -> None:
        save(trainer.model, self._folder)
