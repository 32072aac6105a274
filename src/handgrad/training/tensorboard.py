"""Metrics for TensorBoard, as a callback of a training."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from handgrad.errors import ArgumentError
from handgrad.paths import as_path
from handgrad.training.callbacks import Callback

if TYPE_CHECKING:
    from handgrad.training.trainer import Trainer

#: Counters of a record, which are no metrics.
_COUNTERS: Final = ("kind", "epoch", "step")


class TensorBoard(Callback):
    """Write the metrics of every epoch into `folder`, by steps, for `tensorboard --logdir`.

    Training and validation of one metric share a chart. It needs `pip install
    'handgrad[tensorboard]'`. A run that is resumed hides what was written after its checkpoint. Of
    several ranks, rank 0 writes.

    Raises ArgumentError where tensorboardX is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            import tensorboardX
        except ImportError:
            raise ArgumentError(
                "TensorBoard: tensorboardX is not installed; allowed: after "
                "pip install 'handgrad[tensorboard]'"
            ) from None
        self.folder = as_path("TensorBoard", folder)
        self._writers = tensorboardX.SummaryWriter
        self._writer: Any = None

    def on_start(self, trainer: Trainer) -> None:
        if trainer.replicas.rank > 0:
            return
        self._writer = self._writers(str(self.folder), purge_step=trainer.step + 1)

    def on_epoch(self, trainer: Trainer, record: Mapping[str, float]) -> None:
        if self._writer is None:
            return
        for name, value in record.items():
            if name not in _COUNTERS and value is not None and math.isfinite(value):
                self._writer.add_scalar(_tag(name), value, record["step"])
        self._writer.flush()

    def on_end(self, trainer: Trainer) -> None:
        if self._writer is not None:
            self._writer.close()


def _tag(name: str) -> str:
    """`validation_loss` as loss/validation, beside loss/training; other names as they are."""
    metric = name.removeprefix("validation_")
    if metric not in ("loss", "accuracy"):
        return name
    return f"{metric}/{'training' if metric == name else 'validation'}"
