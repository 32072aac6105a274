"""Training: the loop, its checkpoints, and the folder a run leaves behind.

From Python:

    trainer = hg.Trainer(model, "cross_entropy", "adam", lr=1e-3, out="runs/mine")
    history = trainer.fit(x, y, validation_split=0.1, epochs=5)
    trained = hg.load("runs/mine")             # or trainer.trained

As a run, which is what the command line does with a recipe:

    config = RunConfig(epochs=5, text=toml_text, batch_size=64, seed=0, augment=Affine(shift=1))
    summary = train(config, model, loss, optimizer, data, out="runs/digits")

    text = read_config("runs/digits")          # the config.toml of an interrupted run
    summary = train(config, model, loss, optimizer, data, out="runs/digits", resume=True)

- `model`: a `handgrad.layers.Layer`; `loss`: of `handgrad.losses`; `optimizer`: of
  `handgrad.optimizers`; `config`: see `Trainer`, such as `schedule`, step -> learning rate.
- `data`: a `handgrad.data.Dataset` (x_train, y_train, x_test, y_test, classes, and x_validation,
  y_validation where there is a validation part), or `Parts`, whose parts are sources of batches.
- A fresh run wants a folder that is empty or absent; anything else is a RunError that says so.
- Ctrl-C saves a checkpoint and raises `Interrupted` (a KeyboardInterrupt), whose text names the
  command that resumes; a command line prints it and exits with code 130.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from handgrad.errors import Interrupted
from handgrad.suggestions import suggesting
from handgrad.training.augmentation import Affine, Augmentation, Compose, Flip, Shift
from handgrad.training.callbacks import Callback, EarlyStopping
from handgrad.training.history import History
from handgrad.training.learning_rates import LearningRates, find_lr
from handgrad.training.metrics import Evaluation, evaluate
from handgrad.training.replicas import ALONE, Replicas
from handgrad.training.review import Review, Section
from handgrad.training.run import (
    Parts,
    Run,
    RunConfig,
    read_config,
    resume_run,
    start_run,
    train,
)
from handgrad.training.step import TrainingStep
from handgrad.training.tensorboard import TensorBoard
from handgrad.training.trainer import Trainer

__all__ = [
    "ALONE",
    "Affine",
    "Augmentation",
    "Callback",
    "Compose",
    "EarlyStopping",
    "Evaluation",
    "Flip",
    "History",
    "Interrupted",
    "LearningRates",
    "Parts",
    "Replicas",
    "Review",
    "Run",
    "RunConfig",
    "Section",
    "Shift",
    "TensorBoard",
    "Trainer",
    "TrainingStep",
    "evaluate",
    "find_lr",
    "read_config",
    "resume_run",
    "start_run",
    "train",
]

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__)
