"""A learning rate to begin with, found by a short training in which the rate grows."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Final

import numpy as np

from handgrad import dispatch
from handgrad.arrays import Array
from handgrad.data.given import Examples, TrainingData
from handgrad.data.sources import Source
from handgrad.errors import ArgumentError, RunError
from handgrad.layers.base import Layer
from handgrad.optimizers import clipping_factor, global_norm
from handgrad.paths import as_path
from handgrad.training.fitting import ready
from handgrad.training.gradients import StepGradients
from handgrad.training.metrics import Sums
from handgrad.training.report.charts import Series, figure, line_chart, standalone
from handgrad.training.report.html import page, section
from handgrad.training.trainer import Trainer
from handgrad.writing import write_file

#: The search ends where the mean of late losses is so many times its smallest value.
_RISEN: Final = 4.0
#: The share of the last loss in that mean.
_LATE: Final = 0.1
#: The colour of what the smoothed curve is drawn over.
_FAINT: Final = "color-mix(in oklab, var(--quiet) 45%, var(--tint))"
#: The width of the bell that the curve is smoothed with, as a share of the steps.
_BELL: Final = 0.02
#: A loss that falls by less than this share of the first one has not fallen.
_FALLEN: Final = 0.02


@dataclass(frozen=True)
class LearningRates:
    """The loss at every learning rate that was tried, and the rate that they suggest.

    `losses` are those of the batches, `smoothed` the curve through them, both by `rates`.
    `suggestion` is None where the loss never fell.
    """

    rates: Array
    losses: Array
    smoothed: Array
    suggestion: float | None

    def save(self, path: str | PathLike[str], title: str = "learning rates") -> None:
        """Write the picture, as a page (.html) or as a drawing alone (.svg).

        Raises ArgumentError for another suffix, OSError where it cannot be written.
        """
        path = as_path("LearningRates", path)
        match path.suffix:
            case ".html":
                heading = f"Learning rates for {title}"
                drawn = figure("Loss by learning rate, logarithmic", self._chart())
                text = page(title, heading, self._said(), [_framed(drawn)])
            case ".svg":
                text = standalone(self._chart())
            case _:
                raise ArgumentError(f"LearningRates: file is {path}; allowed: .html or .svg")
        write_file(path, text.encode())

    def _repr_html_(self) -> str:
        return standalone(self._chart())

    def _said(self) -> str:
        tried = f"{len(self.rates)} batches, each with a learning rate above that of the one before"
        if self.suggestion is None:
            return f"{tried}. The loss never fell, so nothing is suggested."
        return (
            f"{tried}. Suggested is <b>{self.suggestion:.2g}</b>, where the loss falls fastest. "
            "Smaller rates learn slower, those where the curve rises destroy what was learned."
        )

    def _chart(self) -> str:
        lines = [
            Series("batches", self.rates, self.losses, _FAINT),
            Series("smoothed", self.rates, self.smoothed, "var(--forward)"),
        ]
        return line_chart(
            lines,
            label="Loss by learning rate",
            x_label="learning rate",
            log=bool((self.smoothed > 0).all()),
            log_x=True,
            marked=self.suggestion,
        )


def find_lr(
    trainer: Trainer,
    x: Examples | TrainingData | Source,
    y: Examples | None = None,
    *,
    lowest: float = 1e-6,
    highest: float = 10.0,
    steps: int = 200,
) -> LearningRates:
    """Train for `steps` while the rate grows from `lowest` to `highest`; suggest one.

    x and y are as `trainer.fit` takes them; loss, optimizer, batches and all else are the
    trainer's, except its rate and schedule. The rate grows by the same factor from step to step,
    and the search ends early where the loss explodes. Suggested is the rate at which the logarithm
    of the loss falls fastest by that of the rate. Model and optimizer are left as they were.

    Raises ArgumentError where a number is impossible, and what `trainer.fit` raises for data.
    Source: Smith, Cyclical learning rates for training neural networks (2017), section 3.3, whose
    rate grows linearly and whose curve is that of the accuracy.
    """
    if not 0 < lowest < highest < math.inf:
        raise ArgumentError(
            f"find_lr: rates are {lowest} to {highest}; allowed: from above 0 to a larger one"
        )
    if steps < 10:
        raise ArgumentError(f"find_lr: steps is {steps}; allowed: 10 or more")
    rates = np.geomspace(lowest, highest, steps)
    with dispatch.precision(trainer.precision), np.errstate(all="ignore"):
        source = ready(trainer, x, y, None, None, None).train
        trainer.parameters = trainer.model.bind()
        with _put_back(trainer.model):
            losses = _losses(trainer, source, rates)
    return _judged(rates[: len(losses)], np.array(losses), _BELL * steps)


def _losses(trainer: Trainer, source: Source, rates: Array) -> list[float]:
    """The loss of a batch at each of the rates, up to where it explodes."""
    optimizer = copy.deepcopy(trainer.optimizer)
    rng = np.random.default_rng(trainer.seed)
    gradients_of = StepGradients(trainer, rng)
    batches = _batches(source, trainer.batch_size * trainer.accumulate, rng)
    losses: list[float] = []
    late, least = 0.0, math.inf
    for number, rate in enumerate(rates.tolist(), 1):
        sums = Sums()
        try:
            gradients = gradients_of(source, next(batches), sums)
        except RunError:  # the loss is not finite
            break
        late += _LATE * (sums.mean_loss - late)
        mean = late / (1 - (1 - _LATE) ** number)
        least = min(least, mean)
        if mean > _RISEN * least:
            break
        losses.append(sums.mean_loss)
        clip = trainer.clip_norm
        scale = 1.0 if clip is None else clipping_factor(global_norm(gradients), clip)
        optimizer.step(trainer.parameters, gradients, rate, scale=scale)
    return losses


def _batches(source: Source, size: int, rng: np.random.Generator) -> Iterator[Array]:
    """Batches of the data, over and over."""
    while True:
        order = source.order(size, rng)
        for first in range(0, len(order), size):
            yield order[first : first + size]


def _judged(rates: Array, losses: Array, bell: float) -> LearningRates:
    if len(rates) < 3:
        return LearningRates(rates, losses, losses, None)
    places = np.arange(len(losses))
    weights = np.exp(-0.5 * ((places[:, None] - places) / bell) ** 2)
    smoothed = weights @ losses / weights.sum(axis=1)
    lowest = int(smoothed.argmin())
    fallen = smoothed[0] - smoothed[lowest] > _FALLEN * abs(smoothed[0])
    if not fallen or lowest < 2:
        return LearningRates(rates, losses, smoothed, None)
    # In proportion, because an early fall from a large loss says little about the rate.
    falling = smoothed[: lowest + 1]
    heights = np.log(falling) if falling.min() > 0 else falling
    slope = np.gradient(heights, np.log(rates[: lowest + 1]))
    return LearningRates(rates, losses, smoothed, float(rates[slope.argmin()]))


@contextmanager
def _put_back(model: Layer) -> Iterator[None]:
    """Put everything of the model that training changes back as it was."""
    parameters = {name: np.array(array) for name, array in model.parameters.items()}
    buffers = {name: np.array(array) for name, array in model.buffers.items()}
    states = {name: each.bit_generator.state for name, each in model.generators.items()}
    try:
        yield
    finally:
        model.update_parameters(parameters)
        model.update_buffers(buffers)
        for name, generator in model.generators.items():
            generator.bit_generator.state = states[name]


def _framed(drawn: str) -> str:
    return section("The curve", "", f'<div class="single">{drawn}</div>')
