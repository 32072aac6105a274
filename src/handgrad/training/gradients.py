"""The gradients of one optimizer step: of one batch, or of several as if they were one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from handgrad.arrays import Array
from handgrad.data.sources import Source
from handgrad.errors import DataError, HandgradError
from handgrad.layers.flat import FlatArrays
from handgrad.optimizers import Accumulation
from handgrad.training.divergence import diverged, find_cause, is_finite
from handgrad.training.metrics import Judge, Sums, inputs_in
from handgrad.training.state import TrainState
from handgrad.training.step import TrainingStep


class BatchGradient:
    """`weight = gradient_of(source, index, sums)`: one batch, whose gradient stands in `flat`.

    The examples are counted in `sums`. `seen`, if given, is called once they are, as a rule before
    the backward pass; it returns the factor by which the loss counts. Raises RunError where the
    loss is not finite.
    """

    def __init__(self, state: TrainState, augmenting: np.random.Generator) -> None:
        self._state = state
        self._augmenting = augmenting
        self._judge = Judge(state.loss)
        self.is_sum = self._judge.is_sum
        self.flat = state.parameters.zeros_like()
        self._step_on = TrainingStep(state.model, state.loss, self.flat)

    def __call__(
        self, source: Source, index: Array, sums: Sums, seen: Callable[[], float] | None = None
    ) -> float:
        """Forward, loss and backward of the examples at `index`; returns what they weigh."""
        state = self._state
        inputs, targets = batch_at(state, source, index, self._augmenting)
        weight = 0.0

        def judge(outputs: Array, loss: Array) -> float | None:
            nonlocal weight
            weight = self._judge.count(sums, float(loss), outputs, targets)
            return None if seen is None else seen()

        value = float(self._step_on(inputs, targets, judge))
        if not math.isfinite(value):
            raise loss_diverged(state, value, inputs, targets)
        return weight


class StepGradients:
    """`gradients_of(source, index, sums)`: what a trainer's model learns from those examples.

    They are counted in `sums`. Raises RunError where the loss is not finite.
    """

    def __init__(self, state: TrainState, augmenting: np.random.Generator) -> None:
        self._size = state.batch_size
        self._gradient_of = BatchGradient(state, augmenting)
        accumulates = state.accumulate > 1
        self._accumulation = Accumulation(state.parameters) if accumulates else None

    def __call__(self, source: Source, index: Array, sums: Sums) -> FlatArrays:
        """The gradients of all examples at `index`, taken `batch_size` at a time."""
        gradient_of = self._gradient_of
        if self._accumulation is None:
            gradient_of(source, index, sums)
            return gradient_of.flat
        parts = range(0, len(index), self._size)
        for first in parts:
            weight = gradient_of(source, index[first : first + self._size], sums)
            self._accumulation.add(gradient_of.flat, 1.0 if gradient_of.is_sum else weight)
        gradients = self._accumulation.take()
        if gradient_of.is_sum:
            gradients.buffer *= len(parts)
        return gradients


def batch_at(
    state: TrainState, source: Source, index: Array, augmenting: np.random.Generator
) -> tuple[tuple[Array, ...], Array]:
    """Inputs, in the model's type and augmented, and targets of the examples at `index`."""
    gathered, targets = source.gather(index)
    inputs = inputs_in(state.parameters.buffer.dtype, gathered)
    if state.augment is not None:
        inputs = (state.augment(inputs[0], augmenting), *inputs[1:])
    return inputs, targets


def loss_diverged(
    state: TrainState, value: float, inputs: tuple[Array, ...], targets: Array
) -> HandgradError:
    """The error for a loss of this batch that is not finite, with its cause."""
    finding = f"the loss is {value} at step {state.step + 1} (epoch {state.epoch + 1})"
    if not all(map(is_finite, (*inputs, targets))):
        return DataError(
            f"training: {finding}, because the data of this batch are not finite; allowed: "
            "data without NaN and infinity"
        )
    return diverged(state, f"{finding}: {find_cause(state.model, inputs)}")
