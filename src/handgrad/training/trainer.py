"""The training loop."""

from __future__ import annotations

import math
import signal
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from handgrad import dispatch
from handgrad.arrays import Array
from handgrad.calls import Explained, explained
from handgrad.data.files import shortened
from handgrad.data.sources import Source
from handgrad.elsewhere import OF_TRAINERS
from handgrad.errors import (
    ArgumentError,
    HandgradError,
    HandgradWarning,
    Interrupted,
    RunError,
)
from handgrad.inference.preprocessing import Preprocessor
from handgrad.inference.trained import TrainedModel
from handgrad.io.checkpoint import (
    generator_state,
    restore_generator,
    under,
)
from handgrad.io.files import description
from handgrad.io.identity import shown
from handgrad.layers.base import Layer
from handgrad.optimizers import Optimizer
from handgrad.suggestions import NoAttributeError, raise_own_error
from handgrad.training.augmentation import Augmentation
from handgrad.training.callbacks import Callback
from handgrad.training.choices import (
    check_backend,
    chosen_augmentation,
    chosen_callbacks,
    chosen_loss,
    chosen_optimizer,
    chosen_steps,
    chosen_update,
)
from handgrad.training.continuing import (
    changed_settings,
    check_arrays,
    check_settings,
    config_of,
    identity_of,
    restore_settings,
    settings_of,
)
from handgrad.training.divergence import layer_of
from handgrad.training.fitting import ready
from handgrad.training.folder import PROGRAM, Run, resume_run, start_run
from handgrad.training.history import History
from handgrad.training.interrupts import Interrupt
from handgrad.training.metrics import Sums, evaluate
from handgrad.training.moving import Moving
from handgrad.training.parts import check_parts
from handgrad.training.progress import Display, DisplayError, display_for
from handgrad.training.replicas import ALONE, Replicas
from handgrad.training.results import write_results
from handgrad.training.review import Review
from handgrad.training.state import CheckpointState
from handgrad.training.synchronized import synchronize
from handgrad.training.training import Training

#: A run's gradient norms are recorded about this many times, enough for a smooth curve.
NORM_RECORDS = 200

#: The end of an epoch is skipped as a checkpoint while writing would take more than this share of
#: the time: epochs of a few milliseconds should not wait for the disk. The last one never is.
CHECKPOINT_SHARE = 0.02


class Trainer(Training, metaclass=Explained):
    """Trains a model on shuffled mini-batches.

    - `loss`: of `handgrad.losses`, or a name: "cross_entropy", "mse", "bce". Without it the targets
      decide: floats are learned by squared error, classes by cross-entropy, of every step where an
      example has more than one.
    - `optimizer`: of `handgrad.optimizers`, or a name, such as "sgd", with `lr` beside it.
    - `preprocessing`: steps of `handgrad.inference.preprocessing` between data and model, which
      `trained` applies too; "standardize" takes its numbers from the training data.
    - `schedule`: step (from 0) -> learning rate; without it the optimizer's own.
    - `clip_norm`: gradients are scaled down to this global norm where they exceed it.
    - `accumulate`: so many batches of `batch_size` make one optimizer step. Each weighs by what its
      mean was taken over, so the step is that of one large batch, the last one of an epoch too.
    - `parts`: the examples of a step are cut into so many, each with random numbers and batch
      statistics of its own, for `replicas` to share; 1 cuts nothing. See `training.parts`.
    - `exact`: the gradients of the parts are added in one order, whoever computes them.
    - `sync_batch_norm`: batch normalisation takes its statistics over the examples of all ranks.
    - `replicas`: the processes that train this model together, such as `handgrad.mpi.Ranks()`; rank
      0 alone has `out` and a display. Every rank makes the same call of `fit`.
    - `seed`: of shuffling and augmentation, and of layers that were made without a generator.
    - `augment`: an augmentation of `handgrad.training`, applied to training batches.
    - `out`: a folder that becomes a run (see `handgrad.training.folder`), with a checkpoint before
      the first step, at the end of epochs and every `checkpoint_every` seconds or
      `checkpoint_steps` steps.
    - `precision`: of float32 matrix products, "float32" or "bf16", in training and in judging; by
      default `hg.get_precision()`. Parameters, optimizer and everything kept stay float32.
    - `backend`: "numpy", or "jax" for steps compiled by XLA, each batch divided among the first
      `devices` of JAX (`pip install 'handgrad[jax]'`); checkpoints and results are the same.
    - `progress`: "auto", "bar", "lines" or "off".
    - `norms_every`: steps between two records of the gradient norms; by default about 200 a run.

    The model's parameters become views of `trainer.parameters`, one flat buffer; the gradients of
    the last step of backend "numpy" stand in `trainer.gradients`. Both are there once the model is
    built, at the latest in `fit`.
    Raises ArgumentError where a value is impossible.
    """

    def __init__(
        self,
        model: Layer,
        loss: Any = None,
        optimizer: Optimizer | str = "adam",
        *,
        lr: float | None = None,
        preprocessing: str | Preprocessor | Sequence[str | Preprocessor] = (),
        about: Mapping[str, Any] | None = None,
        schedule: Callable[[int], float] | None = None,
        clip_norm: float | None = None,
        accumulate: int = 1,
        batch_size: int = 64,
        parts: int = 1,
        exact: bool = False,
        sync_batch_norm: bool = False,
        replicas: Replicas = ALONE,
        seed: int = 0,
        callbacks: Sequence[Callback] = (),
        out: str | Path | Run | None = None,
        augment: Augmentation | None = None,
        precision: str | None = None,
        backend: str = "numpy",
        devices: int = 1,
        checkpoint_every: float = 30.0,
        checkpoint_steps: int | None = None,
        evaluation_batch: int = 256,
        norms_every: int | None = None,
        progress: str = "auto",
    ) -> None:
        counts = {
            "accumulate": accumulate,
            "batch_size": batch_size,
            "devices": devices,
            "checkpoint_steps": checkpoint_steps,
            "evaluation_batch": evaluation_batch,
            "norms_every": norms_every,
            "parts": parts,
        }
        for name, value in counts.items():
            if value is not None and value < 1:
                raise ArgumentError(f"Trainer: {name} is {value}; allowed: an integer from 1")
        if clip_norm is not None and not clip_norm > 0:
            raise ArgumentError(f"Trainer: clip_norm is {clip_norm}; allowed: a positive number")
        check_parts(parts, exact, sync_batch_norm, replicas)
        if precision is not None:
            dispatch.check_precision(precision, "Trainer: precision")
        self.model = model
        self.loss = chosen_loss(loss)
        self.optimizer = chosen_optimizer(optimizer, lr)
        self.preprocessing = chosen_steps(preprocessing)
        self.schedule = schedule
        self.clip_norm = clip_norm
        self.accumulate = accumulate
        self.batch_size = batch_size
        self.parts = parts
        self.exact = exact
        self.sync_batch_norm = sync_batch_norm
        self.replicas = replicas
        self.seed = seed
        self.callbacks = chosen_callbacks(callbacks)
        self.out = out
        self.augment = chosen_augmentation(augment)
        self.precision = precision or dispatch.get_precision()
        self.backend = backend
        self.devices = devices
        check_backend(self)
        self.checkpoint_every = checkpoint_every
        self.checkpoint_steps = checkpoint_steps
        self.evaluation_batch = evaluation_batch
        self.norms_every = norms_every
        self.progress = progress

        self._given_about = dict(about or {})
        self._about = self._given_about
        if model.is_built:
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
        self._shuffling_before = generator_state(self._shuffling)
        self._position = 0
        self._examples = 0
        self._sums = Sums()
        self._sizes: dict[str, int] = {}
        self._identity: dict[str, Any] = {}
        self._run: Run | None = None
        self._interrupt = Interrupt()
        self._saved_at = self._save_seconds = 0.0

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise_own_error(self, name)
            raise NoAttributeError(self, name, OF_TRAINERS)

    def __repr__(self) -> str:
        return f"Trainer({type(self.model).__name__}, {self.loss}, {self.optimizer})"

    @explained
    def fit(
        self,
        x: Any,
        y: Any = None,
        *,
        epochs: int,
        validation_data: Any = None,
        validation_split: float | None = None,
        test_data: Any = None,
        review: Review | None = None,
        resume: bool = False,
        change: bool = False,
    ) -> History:
        """Train for `epochs` passes over the data, judging the model on validation data after each.

        `fit(x, y, ...)` takes arrays, lists, frames, `Pixels` or `Sequences`, one example a row,
        and for each a class, by name or index, or numbers. `fit(data, ...)` takes a data set with
        x_train, y_train and the same for its other parts, or a `handgrad.data.Source` of batches.
        `validation_data` and `test_data` are a pair (x, y) or a source; `validation_split` sets a
        share of the training data aside, of every class alike.

        Layers that wait for sizes or a generator are built. Before the first step all is checked
        that arrays show: lengths, values that are not finite, labels that no output stands for.

        With `out`, the run is finished by an evaluation: on `test_data`, else on the data set's
        test part, else on the validation data; `review` may add its own figures and sections of the
        report.

        `resume=True` continues the run in `out` from its last checkpoint, to the same numbers as if
        it had never stopped. So everything that decides them has to be as it was: model, loss,
        optimizer, schedule, other settings, engine, and the content of the data (a source of
        batches may say by a method `fingerprint()` what stands for that). With `change=True` the
        learning rate, the optimizer's other numbers, the schedule and `clip_norm` may be others,
        which the run then keeps.

        Raises DataError, ShapeError and ArgumentError for data that cannot be learned, naming the
        row; RunError where the folder is not as it should be, where a run is resumed with
        something else, where it cannot be written to, or where loss, gradients or weights stop
        being finite; `Interrupted` after Ctrl-C, SIGTERM or SIGHUP in a run that has a folder.
        """
        if epochs < 0:
            raise ArgumentError(f"Trainer.fit: epochs is {epochs}; allowed: 0 or more")
        with dispatch.precision(self.precision):
            data = ready(self, x, y, validation_data, validation_split, test_data)
            self._about = {**data.about, **self._given_about}
            run = self._run = self._open_run(epochs, resume)
            try:
                if run is not None:
                    self._identity = identity_of(self, data.train, data.validation)
                with np.errstate(all="ignore"):  # what is not finite ends in a sentence
                    self._fit(data.train, data.validation, epochs, run, resume, change)
                if run is not None:
                    self.history.summary = write_results(
                        self, run, data.test, review, data.judged_on
                    )
            finally:
                self.replicas.announce("")
                if run is not None and run is not self.out:
                    run.close()
        return self.history

    def _open_run(self, epochs: int, resume: bool) -> Run | None:
        if isinstance(self.out, Run):
            return self.out
        if self.replicas.rank > 0:
            return None
        if self.out is None:
            if resume:
                raise ArgumentError("Trainer: resume needs out, the folder of the run; found None")
            return None
        run = resume_run(self.out) if resume else start_run(self.out, config_of(self, epochs))
        run.resume_command = PROGRAM
        run.change_command = (
            "the same program with another learning rate, such as lr={lr}, and "
            "fit(..., resume=True, change=True)"
        )
        run.config_text = config_of(self, epochs)
        return run

    # -- the loop ---------------------------------------------------------------------------------

    def _fit(
        self,
        source: Source,
        validation: Source | None,
        epochs: int,
        run: Run | None,
        resume: bool,
        change: bool,
    ) -> None:
        self.parameters = self.model.bind()
        if self.sync_batch_norm:
            synchronize(self.model, self.replicas)
        self._updater = self.replicas.updater(self.optimizer, self.parameters)
        self._update = chosen_update(self, self._updater, self._augmenting)
        self.history = History()
        self.epoch, self._position, self.stop, self.seconds = 0, 0, False, 0.0
        self._examples = len(source)
        self._sums = Sums()
        self._moving = Moving(self, self._identity)
        is_kept = bool(self.replicas.agree(run is not None)[0])
        saved, changed = (None, False) if run is None else self._begin(run, epochs, resume, change)
        begins = self.replicas.agree(run is not None and (saved is None or changed))[0]
        saved = self._follow(saved)
        if begins:
            self._save(run)
        if run is not None:
            self.replicas.announce(run.resume_command)
        for callback in self.callbacks:
            callback.on_start(self)
        if saved is not None and self.step > 0:  # before the first step it has begun nothing
            self._put_back(*saved)

        steps = math.ceil(len(source) / (self.batch_size * self.accumulate)) * epochs
        norms_every = self.norms_every or max(1, steps // NORM_RECORDS)
        display = display_for(self.progress if self.replicas.rank == 0 else "off", epochs)
        try:
            with self._interrupt if is_kept else nullcontext():
                while self.epoch < epochs and not self.stop:
                    self._run_epoch(source, validation, run, display, norms_every, epochs)
        except DisplayError as error:
            if run is None or self.replicas.size > 1:  # the others do not know of it
                raise
            self._save(run)
            raise RunError(f"{error}; saved. Continue with: {run.resume_command}") from None
        finally:
            display.close()
        for callback in self.callbacks:
            callback.on_end(self)
        if run is not None:
            run.save_model({**self.model.parameters, **self.model.buffers})

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
        self._sizes = {"batch_size": self.batch_size, "accumulate": self.accumulate}
        order = source.order(self.batch_size, self._shuffling)
        group = self.batch_size * self.accumulate
        watchers = [
            callback
            for callback in self.callbacks
            if type(callback).on_step is not Callback.on_step
        ]
        checkpoint_due = math.inf if run is None else began + self.checkpoint_every
        first_position = self._position
        if first_position > len(order):
            raise RunError(
                f"{run.checkpoint if run else 'checkpoint'}: position is {first_position}; "
                f"allowed: 0 to {len(order)}, the examples of an epoch"
            )
        display.start(self.epoch, first_position, len(order))

        while self._position < len(order):
            index = order[self._position : self._position + group]
            rate = self._learning_rate(self.step)
            wants_norms = run is not None and self.step % norms_every == 0
            norms = self._update(source, index, self._sums, rate, wants_norms=wants_norms)
            if run is not None and norms:
                run.log({"kind": "gradients", "step": self.step, "norms": norms})
            self.step += 1
            self._position += len(index)
            if watchers:
                self._update.publish()
            for callback in watchers:
                callback.on_step(self)

            now = time.perf_counter()
            if now >= display.due:
                display.update(now, self._position, self._sums.mean_loss, self._sums.accuracy)
            due = run is not None and (
                now >= checkpoint_due
                or (self.checkpoint_steps is not None and self.step % self.checkpoint_steps == 0)
            )
            if self._agreed(due or self._interrupt.asked > 0):
                self.seconds = seconds_before + now - began
                if self._interrupt.asked and self._position < len(order):
                    self._leave(run)
                self._save(run)
                checkpoint_due = time.perf_counter() + self.checkpoint_every

        self._check_weights()
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
        self._shuffling_before = generator_state(self._shuffling)
        if run is not None:
            run.log(record)
        last = self.stop or self.epoch == epochs
        if self._agreed(run is not None and (last or self._worth_saving())):
            self._save(run)
        display.end_epoch(record)
        if self._interrupt.asked and not last:
            self._leave(run)

    def _agreed(self, saves: bool) -> bool:
        """Return whether one of the ranks saves, and let all know of a signal to one of them."""
        asked, agreed = self.replicas.agree(self._interrupt.asked, saves)
        if asked:  # a signal that comes meanwhile is not lost
            self._interrupt.asked = asked
        return bool(agreed)

    def _epoch_record(self, validation: Source | None, pace: float) -> dict[str, Any]:
        record: dict[str, Any] = {
            "kind": "epoch",
            "epoch": self.epoch + 1,
            "step": self.step,
            "loss": self._sums.mean_loss,
            "accuracy": self._sums.accuracy,
        }
        if validation is not None:
            judged = evaluate(
                self.model, self.loss, validation, self.evaluation_batch, replicas=self.replicas
            )
            record["validation_loss"] = judged.loss
            record["validation_accuracy"] = judged.accuracy
        record["learning_rate"] = float(self._learning_rate(self.step - 1))
        record["examples_per_second"] = round(pace, 1)
        return record

    def _learning_rate(self, step: int) -> float:
        if self.schedule is None:
            return self.optimizer.lr
        rate = self.schedule(step)
        if not (isinstance(rate, int | float | np.number) and math.isfinite(rate)):
            raise ArgumentError(
                f"Trainer: schedule({step}) is {rate!r}; allowed: a finite number, as a rate is"
            )
        return rate

    # -- running away -----------------------------------------------------------------------------

    def _check_weights(self) -> None:
        """Bring the weights up to date; raise RunError where they are not finite."""
        self._update.publish()
        if not np.isfinite(self.parameters.buffer).all():
            raise self.diverged(
                f"the weights of the layer {layer_of(self.parameters)} are not finite after step "
                f"{self.step} (epoch {self.epoch + 1})"
            )

    # -- saving, resuming, stopping ---------------------------------------------------------------

    @property
    def trained(self) -> TrainedModel:
        """The model with what belongs to its use; `hg.load` of the run's folder gives the same."""
        return TrainedModel(self.model, **self._about)

    def _save(self, run: Run | None) -> None:
        """Write a checkpoint, on rank 0, once the others have given it what they alone have.

        It falls between two optimizer steps. Raises RunError where the weights are not finite: no
        checkpoint ever has such ones.
        """
        self._check_weights()
        began = time.perf_counter()
        optimizer = self._updater.state
        if run is None:
            return
        arrays = {f"model.{name}": array for name, array in self.model_arrays().items()}
        for name, array in optimizer.items():
            arrays[f"optimizer.{name}"] = array
        for i, callback in enumerate(self.callbacks):
            for name, array in callback.arrays().items():
                arrays[f"callback{i}.{name}"] = array
        run.save(
            arrays,
            {
                "identity": self._identity,
                "settings": settings_of(self),
                "moved": self._moving.table(arrays, self._sizes if self._position else {}),
                "epoch": self.epoch,
                "position": self._position,
                "step": self.step,
                "stop": self.stop,
                "seconds": self.seconds,
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
        run.save_table(self.history.epochs)
        self._saved_at = time.perf_counter()
        self._save_seconds = self._saved_at - began

    def _worth_saving(self) -> bool:
        waited = time.perf_counter() - self._saved_at
        return self._save_seconds <= CHECKPOINT_SHARE * waited

    def _begin(
        self, run: Run, epochs: int, resume: bool, change: bool
    ) -> tuple[tuple[dict[str, Array], CheckpointState] | None, bool]:
        """Continue from the last checkpoint, if there is one, with changes that are meant.

        Returns that checkpoint, and whether anything was changed.

        Changed settings go into config.toml before there is a checkpoint with them, so that a
        process killed in between is resumed with them: a config.toml that is not the checkpoint's
        allows the same changes.
        """
        run.description = description(self.trained)
        saved = run.load() if resume else None
        start = None
        changes: dict[str, Any] = {}
        if saved is not None:
            state = CheckpointState.read(run.checkpoint, saved[1])
            start = saved[0], state
            changes = changed_settings(
                run, state, self._identity, change or state.config != run.config_checksum
            )
            check_settings(self, run, state.settings)
            check_arrays(self, run, saved[0], state)
            # Another value that is meant goes before the one that a callback had come to.
            kept = {path: v for path, v in state.settings.items() if path not in changes}
            start = saved[0], replace(state, settings=kept)
            self._check_epochs(run, epochs, state)
            if change and state.stop and run.finished:
                raise RunError(
                    f"{run.folder}: early stopping, or another callback, ended the run after epoch "
                    f"{state.epoch}; allowed: no more epochs"
                )
            self._restore(*start)
            if self.epoch < epochs and not self.stop:
                run.reopen()
            self.history.epochs = [line for line in run.records() if line["kind"] == "epoch"]
        if change:
            described = ", ".join(f"{path} = {shown(now)}" for path, (_, now) in changes.items())
            run.change_config(f"after step {self.step}: {run.changes or described or 'nothing'}")
        if run.changes and "schedule" not in run.changes:
            self._warn_of_schedule(run, changes)
        if changes:
            run.log({"kind": "change", "step": self.step, "changes": changes})
        changed = bool(change or changes)
        if start is not None and not changed:
            # The process may have been killed between checkpoint and table.
            run.save_table(self.history.epochs)
        return start, changed

    def _warn_of_schedule(self, run: Run, changes: Mapping[str, Any]) -> None:
        """Say that other epochs are another schedule, which no uninterrupted run would have."""
        for path, (was, now) in changes.items():
            if path.startswith("schedule"):
                warnings.warn(
                    f"{run.folder}: {path} is {shown(now)} from step {self.step} on, and was "
                    f"{shown(was)}, because the schedule goes over all epochs; expected other "
                    "numbers than those of a run that was not interrupted",
                    HandgradWarning,
                    stacklevel=2,
                )
                return

    def _follow(
        self, saved: tuple[dict[str, Array], CheckpointState] | None
    ) -> tuple[dict[str, Array], CheckpointState] | None:
        """Begin on every rank as on rank 0, which alone has read the checkpoint; returns that."""
        if self.replicas.size == 1:
            return saved
        first = self.model_arrays() if saved is None else None
        first, saved, epochs = self.replicas.share((first, saved, self.history.epochs))
        if self.replicas.rank > 0:
            if saved is None:
                self.load_model_arrays(first)
            else:
                self._restore(*saved)
            self.history.epochs = epochs
        found: tuple[dict[str, Array], CheckpointState] | None = saved
        return found

    def _check_epochs(self, run: Run, epochs: int, state: CheckpointState) -> None:
        """Raise RunError where the run has come further than it is to go."""
        if state.epoch + (state.position > 0) > epochs:
            raise RunError(
                f"{run.folder}: epochs is {epochs}; allowed: {state.epoch + (state.position > 0)} "
                "or more, which the run has reached"
            )

    def _restore(self, arrays: Mapping[str, Array], state: CheckpointState) -> None:
        """Continue from what a checkpoint of this training has."""
        self._put_back(arrays, state, begun=False)
        for i, callback in enumerate(self.callbacks):
            kind = type(callback).__name__
            try:
                callback.restore(state.callbacks[i], under(f"callback{i}.", arrays))
            except HandgradError:
                raise
            except Exception as error:  # of whoever wrote the callback
                raise RunError(
                    f"checkpoint: the state of {kind} is damaged ({type(error).__name__}: "
                    f"{shortened(error)}); expected what its state() returned"
                ) from error
        self._shuffling_before = generator_state(self._shuffling)
        self.epoch = state.epoch
        self._position = state.position
        self.step = state.step
        self.stop = state.stop
        self.seconds = state.seconds
        self._sums = state.sums

    def _put_back(
        self, arrays: Mapping[str, Array], state: CheckpointState, *, begun: bool = True
    ) -> None:
        """Put back what callbacks can change, and may have as they have `begun`."""
        self._moving.restore(state.moved, arrays, begun=begun)
        self.load_model_arrays(under("model.", arrays))
        restore_settings(self, state.settings)
        self._updater.load_state(under("optimizer.", arrays))
        restore_generator(self._shuffling, state.generators["shuffling"])
        restore_generator(self._augmenting, state.generators["augmenting"])
        for name, generator in self.model.generators.items():
            restore_generator(generator, state.generators["model"][name])

    def _leave(self, run: Run | None) -> NoReturn:
        self._save(run)
        number = self._interrupt.asked
        cause = (
            "interrupted"
            if number == signal.SIGINT
            else f"stopped by {signal.Signals(number).name}"
        )
        raise Interrupted(
            f"{cause} in epoch {self.epoch + 1} after step {self.step}; saved. "
            f"Continue with: {run.resume_command if run else PROGRAM}",
            number,
        )
