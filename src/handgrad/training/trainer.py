"""`hg.Trainer`: what trains a model, from one call to its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from handgrad import dispatch
from handgrad.calls import Explained, explained
from handgrad.elsewhere import OF_TRAINERS
from handgrad.errors import ArgumentError
from handgrad.suggestions import NoAttributeError, raise_own_error
from handgrad.training.fitting import ready
from handgrad.training.history import History
from handgrad.training.loop import fit_epochs
from handgrad.training.opening import open_run
from handgrad.training.results import write_results
from handgrad.training.review import Review
from handgrad.training.state import TrainState


class Trainer(TrainState, metaclass=Explained):
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
            self.data_about = data.about
            run = self.run = open_run(self, epochs, resumes=resume)
            try:
                with np.errstate(all="ignore"):  # what is not finite ends in a sentence
                    fit_epochs(self, data, epochs, resumes=resume, change=change)
                if run is not None:
                    self.history.summary = write_results(
                        self, run, data.test, review, data.judged_on
                    )
            finally:
                self.replicas.announce("")
                if run is not None and run is not self.out:
                    run.close()
        return self.history
