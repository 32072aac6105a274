"""A run from a recipe: train in a folder, or continue there, and write the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from handgrad.data.given import TrainingData
from handgrad.data.sources import Source
from handgrad.errors import RunError
from handgrad.layers.base import Layer
from handgrad.losses import Loss
from handgrad.optimizers import Optimizer
from handgrad.training.callbacks import EarlyStopping
from handgrad.training.folder import Run
from handgrad.training.opening import read_config, resume_run, start_run
from handgrad.training.review import Review
from handgrad.training.settings import TrainSettings
from handgrad.training.trainer import Trainer

__all__ = ["Parts", "Run", "RunConfig", "read_config", "resume_run", "start_run", "train"]


@dataclass(frozen=True)
class Parts:
    """Data as sources of batches: what is learned from, what judges each epoch and the end."""

    train: Any
    validation: Source | None = None
    test: Source | None = None


@dataclass(frozen=True)
class RunConfig(TrainSettings):
    """The settings of a recipe about training; `text` is the TOML that config.toml keeps.

    `early_stopping` is a patience in epochs, on the validation loss; `keep_best` keeps the weights
    of the epoch where that is lowest, without stopping. See `Trainer` for the others.
    """

    epochs: int
    text: str
    early_stopping: int | None = None
    keep_best: bool = False


def trainer_of(config: RunConfig, model: Layer, loss: Any, optimizer: Optimizer) -> Trainer:
    """A trainer with these settings."""
    settings = {each.name: getattr(config, each.name) for each in fields(TrainSettings)}
    if config.early_stopping is not None or config.keep_best:
        settings["callbacks"] = [*config.callbacks, EarlyStopping(config.early_stopping)]
    return Trainer(model, loss, optimizer, **settings)


def _judged_by_epoch(data: Parts) -> bool:
    """Return whether there is a validation part; a few rows alone leave none."""
    return data.validation is not None or getattr(data.train, "x_validation", None) is not None


def train(
    config: RunConfig,
    model: Layer,
    loss: Loss,
    optimizer: Optimizer,
    data: Source | TrainingData,
    out: str | Path,
    resume: bool = False,
    *,
    changes: str = "",
    review: Review | None = None,
    prepare: Callable[[Path], None] | None = None,
) -> dict[str, object]:
    """Train `model` on `data` in the folder `out`; returns what summary.json holds.

    `review` as in `Trainer.fit`; `prepare` is called with the folder before the first step, to put
    what belongs to the run beside its weights. With `resume`, `model`, `optimizer` and the rest are
    built exactly as the first time (from `read_config(out)`),
    and the state of the checkpoint replaces their first one; a finished run only returns its
    summary, unless `changes` and `config.epochs` give it more epochs. `changes` names the settings
    that differ on purpose (see `Trainer.fit`); the run keeps them, `config.text` becomes its
    config.toml.

    Raises RunError for a folder that holds something else, is in use, damaged or not to be written
    to, or (resuming) holds no run or one that was begun otherwise; `Interrupted` after a signal.
    """
    divided = data if isinstance(data, Parts) else Parts(data)
    if not _judged_by_epoch(divided):
        config = replace(config, keep_best=False)
    trainer = trainer_of(config, model, loss, optimizer)

    def fit() -> dict[str, Any]:
        history = trainer.fit(
            divided.train,
            epochs=config.epochs,
            validation_data=divided.validation,
            test_data=divided.test,
            review=review,
            resume=resume,
            change=bool(changes),
        )
        return history.summary or {}

    if config.replicas.rank > 0:  # the folder is rank 0's
        return {} if config.replicas.share(None) else fit()
    with resume_run(out) if resume else start_run(out, config.text) as run:
        summary: dict[str, Any] | None = run.read_summary() if run.finished else None
        goes_on = summary is None or (bool(changes) and config.epochs > summary["epochs"])
        if config.replicas.share(not goes_on):
            assert summary is not None
            if changes:
                raise RunError(
                    f"{out}: the run is finished; allowed: changes of an unfinished one, or more "
                    f"epochs than {summary['epochs']}, such as --epochs {2 * summary['epochs']}"
                )
            return summary
        if prepare is not None:
            run.keep(prepare)
        run.config_text, run.changes = config.text, changes
        trainer.out = run
        return fit()
