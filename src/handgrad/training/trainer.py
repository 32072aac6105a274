"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from handgrad import dispatch
from handgrad.arrays import Array
from handgrad.data.sources import Source, as_source
from handgrad.errors import ArgumentError, HandgradError, RunError
from handgrad.layers.base import Layer
from handgrad.layers.flat import FlatArrays
from handgrad.optimizers import Optimizer, clipping_factor, global_norm
from handgrad.training.augmentation import Augmentation
from handgrad.training.callbacks import Callback
from handgrad.training.checkpoint import (
    generator_state,
    load_model_arrays,
    restore_generator,
    under,
)
from handgrad.training.folder import Run, resume_run, start_run
from handgrad.training.gradients import StepGradients
from handgrad.training.interrupts import Interrupt, Interrupted
from handgrad.training.metrics import Sums, evaluate, layer_norms
from handgrad.training.progress import Display, display_for
from handgrad.training.review import Review

#: A run's gradient norms are recorded about this many times, enough for a smooth curve.
NORM_RECORDS = 200

#: The end of an epoch is skipped as a checkpoint while writing would take more than this share of
#: the time: epochs of a few milliseconds should not wait for the disk. The last one never is.
CHECKPOINT_SHARE = 0.02


@dataclass
class History:
    """What a training measured: one record per epoch, and the run's summary where there is one.

    `history["validation_loss"]` is that value for every epoch.
    """

    epochs: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> list[Any]:
        return [record[name] for record in self.epochs]


class Trainer:
    """Trains a model on shuffled mini-batches.

    - `schedule`: step (from 0) -> learning rate; without it the optimizer's own.
    - `clip_norm`: gradients are scaled down to this global norm where they exceed it.
    - `accumulate`: so many batches of `batch_size` make one optimizer step. Each weighs by what its
      mean was taken over, so the step is that of one large batch, the last one of an epoch too.
    - `seed`: of shuffling and augmentation. The model's own generators come from its constructor.
    - `augment`: an augmentation of `handgrad.training`, applied to training batches.
    - `out`: a folder that becomes a run (see `handgrad.training.folder`), with a checkpoint at the
      end of every epoch and every `checkpoint_every` seconds or `checkpoint_steps` steps.
    - `precision`: of float32 matrix products, "float32" or "bf16", in training and in judging; by
      default `hg.get_precision()`. Parameters, optimizer and everything kept stay float32.
    - `progress`: "auto", "bar", "lines" or "off".
    - `norms_every`: steps between two records of the gradient norms; by default about 200 a run.

    The model's parameters become views of `trainer.parameters`, one flat buffer; the gradients of
    the last step stand in `trainer.gradients`.
    Raises ArgumentError where a value is impossible.
    """

    gradients: FlatArrays

    def __init__(
        self,
        model: Layer,
        loss: Any,
        optimizer: Optimizer,
        *,
        schedule: Callable[[int], float] | None = None,
        clip_norm: float | None = None,
        accumulate: int = 1,
        batch_size: int = 64,
        seed: int = 0,
        callbacks: Sequence[Callback] = (),
        out: str | Path | Run | None = None,
        augment: Augmentation | None = None,
        precision: str | None = None,
        checkpoint_every: float = 30.0,
        checkpoint_steps: int | None = None,
        evaluation_batch: int = 256,
        norms_every: int | None = None,
        progress: str = "auto",
    ) -> None:
        counts = {
            "accumulate": accumulate,
            "batch_size": batch_size,
            "checkpoint_steps": checkpoint_steps,
            "evaluation_batch": evaluation_batch,
            "norms_every": norms_every,
        }
        for name, value in counts.items():
            if value is not None and value < 1:
                raise ArgumentError(f"Trainer: {name} is {value}; allowed: an integer from 1")
        if clip_norm is not None and not clip_norm > 0:
            raise ArgumentError(f"Trainer: clip_norm is {clip_norm}; allowed: a positive number")
        if precision is not None:
            dispatch.check_precision(precision, "Trainer: precision")
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.schedule = schedule
        self.clip_norm = clip_norm
        self.accumulate = accumulate
        self.batch_size = batch_size
        self.seed = seed
        self.callbacks = tuple(callbacks)
        self.out = out
        self.augment = augment
        self.precision = precision or dispatch.get_precision()
        self.checkpoint_every = checkpoint_every
        self.checkpoint_steps = checkpoint_steps
        self.evaluation_batch = evaluation_batch
        self.norms_every = norms_every
        self.progress = progress

        self.parameters = model.bind()
        self.history = History()
        self.step = 0
        self.epoch = 0
        self.stop = False
        self.seconds = 0.0
        streams = np.random.SeedSequence(seed).spawn(2)
        self._shuffling, self._augmenting = (
            np.random.Generator(np.random.PCG64(stream)) for stream in streams
        )
        self._gradients_of = StepGradients(self, self._augmenting)
        self._shuffling_before = generator_state(self._shuffling)
        self._position = 0
        self._examples = 0
        self._sums = Sums()
        self._interrupt = Interrupt()
        self._saved_at = self._save_seconds = 0.0

    def fit(
        self,
        train: Any,
        validation: Any = None,
        *,
        epochs: int,
        test: Any = None,
        review: Review | None = None,
        resume: bool = False,
    ) -> History:
        """Train for `epochs` passes over `train`, judging the model on `validation` after each.

        Each of `train`, `validation` and `test` is a pair (x, y) of arrays, a
        `handgrad.data.Source` of batches, or one data set object with x_train, y_train and the same
        for its other parts. With `out`, the run is finished by an evaluation: on `test`, else on
        the data set's test part, else on the validation data; `review` may add its own figures and
        sections of the report. `resume=True` continues the run in `out` from its last checkpoint.

        Raises RunError where the folder is not as it should be or the loss stops being finite, and
        `Interrupted` after Ctrl-C in a run that has a folder.
        """
        from handgrad.training.results import write_results

        dtype = self.parameters.buffer.dtype
        run = self._open_run(epochs, resume)
        try:
            source = as_source(train, "train", dtype)
            if validation is None and getattr(train, "x_validation", None) is not None:
                validation = train
            judged = None if validation is None else as_source(validation, "validation", dtype)
            with dispatch.precision(self.precision):
                self._fit(source, judged, epochs, run, resume)
                if run is not None:
                    part = "test"
                    if test is None and hasattr(train, "x_test"):
                        test = train
                    elif test is None:
                        test, part = validation, "validation"
                    self.history.summary = write_results(self, run, test, review, part)
        finally:
            if run is not None and run is not self.out:
                run.close()
        return self.history

    def _open_run(self, epochs: int, resume: bool) -> Run | None:
        if isinstance(self.out, Run):
            return self.out
        if self.out is None:
            if resume:
                raise ArgumentError("Trainer: resume needs out, the folder of the run; found None")
            return None
        run = resume_run(self.out) if resume else start_run(self.out, self._config(epochs))
        run.resume_command = "the same program, with fit(..., resume=True)"
        return run

    def _config(self, epochs: int) -> str:
        """The config.toml of a run that was started from Python and not from a recipe."""
        lines = ["# Written by hg.Trainer; model and data come from the program.", "[trainer]"]
        settings = {"epochs": epochs, **self._identity()}
        lines += [f"{name} = {value}" for name, value in settings.items()]
        lines += [f"clip_norm = {self.clip_norm}"] if self.clip_norm is not None else []
        lines += [
            f'precision = "{self.precision}"',
            f'optimizer = "{type(self.optimizer).__name__}"',
            f"lr = {self.optimizer.lr}",
        ]
        return "\n".join(lines) + "\n"

    def _identity(self) -> dict[str, int]:
        """What a checkpoint must share with the trainer that continues it."""
        return {"seed": self.seed, "batch_size": self.batch_size, "accumulate": self.accumulate}

    # -- the loop ---------------------------------------------------------------------------------

    def _fit(
        self, source: Source, validation: Source | None, epochs: int, run: Run | None, resume: bool
    ) -> None:
        self.parameters = self.model.bind()
        self.history = History()
        self.epoch, self._position, self.stop, self.seconds = 0, 0, False, 0.0
        self._examples = len(source)
        self._sums = Sums()
        if run is not None and resume:
            self._restore(run)
        for callback in self.callbacks:
            callback.on_start(self)

        steps = math.ceil(len(source) / (self.batch_size * self.accumulate)) * epochs
        norms_every = self.norms_every or max(1, steps // NORM_RECORDS)
        display = display_for(self.progress, epochs)
        try:
            with self._interrupt if run is not None else nullcontext():
                while self.epoch < epochs and not self.stop:
                    self._run_epoch(source, validation, run, display, norms_every, epochs)
        finally:
            display.close()
        for callback in self.callbacks:
            callback.on_end(self)
        if run is not None:
            run.save_model(self.model_arrays())

    def _run_epoch(
        self,
        source: Source,
        validation: Source | None,
        run: Run | None,
        display: Display,
        norms_every: int,
        epochs: int,
    ) -> None:
        """One pass over the data from where `_position` says, and what follows it."""
        began = time.perf_counter()
        seconds_before = self.seconds
        self._shuffling_before = generator_state(self._shuffling)
        order = source.order(self.batch_size, self._shuffling)
        group = self.batch_size * self.accumulate
        watchers = [
            callback
            for callback in self.callbacks
            if type(callback).on_step is not Callback.on_step
        ]
        checkpoint_due = math.inf if run is None else began + self.checkpoint_every
        first_position = self._position
        display.start(self.epoch, first_position, len(order))

        while self._position < len(order):
            index = order[self._position : self._position + group]
            self.gradients = self._gradients_of(source, index, self._sums)
            if run is not None and self.step % norms_every == 0:
                norms = layer_norms(self.gradients)
                run.log({"kind": "gradients", "step": self.step, "norms": norms})
            scale = 1.0
            if self.clip_norm is not None:
                scale = clipping_factor(global_norm(self.gradients), self.clip_norm)
            rate = self._learning_rate(self.step)
            self.optimizer.step(self.parameters, self.gradients, rate, scale=scale)
            self.step += 1
            self._position += len(index)
            for callback in watchers:
                callback.on_step(self)

            now = time.perf_counter()
            if now >= display.due:
                display.update(now, self._position, self._sums.mean_loss, self._sums.accuracy)
            if run is not None and (
                now >= checkpoint_due
                or self._interrupt.asked
                or (self.checkpoint_steps and self.step % self.checkpoint_steps == 0)
            ):
                self.seconds = seconds_before + now - began
                if self._interrupt.asked and self._position < len(order):
                    self._leave(run)
                self._save(run)
                checkpoint_due = time.perf_counter() + self.checkpoint_every

        pace = (len(order) - first_position) / max(time.perf_counter() - began, 1e-9)
        record = self._epoch_record(validation, pace)
        self.seconds = seconds_before + time.perf_counter() - began
        record["seconds"] = round(self.seconds, 3)
        self.epoch += 1
        self._position = 0
        self._sums = Sums()
        self.history.epochs.append(record)
        for callback in self.callbacks:
            callback.on_epoch(self, record)
        display.end_epoch(record)
        if run is not None:
            run.log(record)
            self._shuffling_before = generator_state(self._shuffling)
            last = self.stop or self.epoch == epochs
            if last or self._worth_saving():
                self._save(run)
            if self._interrupt.asked and not last:
                self._leave(run)

    def _epoch_record(self, validation: Source | None, pace: float) -> dict[str, Any]:
        record: dict[str, Any] = {
            "kind": "epoch",
            "epoch": self.epoch + 1,
            "step": self.step,
            "loss": self._sums.mean_loss,
            "accuracy": self._sums.accuracy,
        }
        if validation is not None:
            judged = evaluate(self.model, self.loss, validation, self.evaluation_batch)
            record["validation_loss"] = judged.loss
            record["validation_accuracy"] = judged.accuracy
        record["learning_rate"] = self._learning_rate(self.step - 1)
        record["examples_per_second"] = round(pace, 1)
        return record

    def _learning_rate(self, step: int) -> float:
        return self.optimizer.lr if self.schedule is None else self.schedule(step)

    # -- saving, resuming, stopping ---------------------------------------------------------------

    def model_arrays(self) -> dict[str, Array]:
        """Parameters and buffers together, as model.safetensors keeps them."""
        return {**self.model.parameters, **self.model.buffers}

    def load_model_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Put `model_arrays()` back. Raises an error for a missing, unknown or mis-shaped array."""
        load_model_arrays(self.model, arrays)

    def _save(self, run: Run) -> None:
        """Write a checkpoint; it falls between two optimizer steps."""
        began = time.perf_counter()
        arrays = {f"model.{name}": array for name, array in self.model_arrays().items()}
        for name, array in self.optimizer.state.items():
            arrays[f"optimizer.{name}"] = array
        for i, callback in enumerate(self.callbacks):
            for name, array in callback.arrays().items():
                arrays[f"callback{i}.{name}"] = array
        run.save(
            arrays,
            {
                **self._identity(),
                "epoch": self.epoch,
                "position": self._position,
                "step": self.step,
                "stop": self.stop,
                "seconds": self.seconds,
                "examples": self._examples,
                "sums": asdict(self._sums),
                "callbacks": [callback.state() for callback in self.callbacks],
                "generators": {
                    "shuffling": self._shuffling_before,
                    "augmenting": generator_state(self._augmenting),
                    "model": {
                        name: generator_state(generator)
                        for name, generator in self.model.generators.items()
                    },
                },
            },
        )
        self._saved_at = time.perf_counter()
        self._save_seconds = self._saved_at - began

    def _worth_saving(self) -> bool:
        waited = time.perf_counter() - self._saved_at
        return self._save_seconds <= CHECKPOINT_SHARE * waited

    def _restore(self, run: Run) -> None:
        """Continue where the run's last checkpoint left off; from the start if there is none."""
        saved = run.load()
        if saved is None:
            return
        arrays, state = saved
        for name, value in {**self._identity(), "examples": self._examples}.items():
            if state[name] != value:
                raise RunError(
                    f"{run.folder}: {name} is {value}; allowed: {state[name]}, as in the checkpoint"
                )
        try:
            self.load_model_arrays(under("model.", arrays))
            self.optimizer.load_state(under("optimizer.", arrays))
        except HandgradError as error:
            raise RunError(f"{run.checkpoint} does not fit {run.config}: {error}") from None
        for i, callback in enumerate(self.callbacks):
            callback.restore(state["callbacks"][i], under(f"callback{i}.", arrays))
        generators = state["generators"]
        restore_generator(self._shuffling, generators["shuffling"])
        restore_generator(self._augmenting, generators["augmenting"])
        for name, generator in self.model.generators.items():
            restore_generator(generator, generators["model"][name])
        self.epoch = state["epoch"]
        self._position = state["position"]
        self.step = state["step"]
        self.stop = state["stop"]
        self.seconds = state["seconds"]
        self._sums = Sums(**state["sums"])
        self.history.epochs = [line for line in run.records() if line["kind"] == "epoch"]

    def _leave(self, run: Run) -> NoReturn:
        self._save(run)
        raise Interrupted(
            f"interrupted in epoch {self.epoch + 1} after step {self.step}; saved. "
            f"Continue with: {run.resume_command}"
        )
