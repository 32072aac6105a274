"""One batch's loss and gradients; those of a small network by repeating recorded calls of kernels.

Most of a small network's step is Python: what finds the kernels, checks the shapes and makes the
arrays. It comes to the same for every batch of one shape. The first of them therefore leaves a
recording, the list of its kernels' calls with their arguments; for the next, its numbers are copied
to where the first one's were and the calls are made again, in one native call. The same kernels
read and write arrays of the same sizes, so the results are the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad import dispatch, kernels
from handgrad.arrays import Array
from handgrad.layers import (
    Activation,
    AvgPool2d,
    Conv1d,
    Conv2d,
    Dense,
    Flatten,
    Layer,
    LayerNorm,
    MaxPool2d,
    RMSNorm,
    Sequential,
    walk,
)
from handgrad.losses import CrossEntropy, Loss
from handgrad.models import CNN, GPT, MLP, Transformer

#: What computes by kernels alone, draws no numbers and decides nothing by values. These classes
#: themselves: one derived from them may do anything.
RECORDABLE: Final[frozenset[type]] = frozenset(
    {
        Activation,
        AvgPool2d,
        CNN,
        Conv1d,
        Conv2d,
        CrossEntropy,
        Dense,
        Flatten,
        LayerNorm,
        MLP,
        MaxPool2d,
        RMSNorm,
        Sequential,
    }
)
#: Models whose backward reads nothing of the scores they gave, so that these can make room for
#: their gradient: over a large vocabulary they are the largest array. These classes themselves.
OVERWRITABLE: Final[frozenset[type]] = frozenset({GPT, Transformer})
#: A recording keeps the arrays of its step, which the memory of a larger network is too good for:
#: there Python is a small part of the time.
MOST_BYTES: Final = 8 << 20
#: All recordings of a step together take no more: those that were not repeated for the longest time
#: make room for others. Their number is bounded since a batch is compared with one after another.
MOST_BYTES_TOGETHER: Final = 32 << 20
MOST_RECORDINGS: Final = 16

#: What is told the outputs and the loss.
See = Callable[[Array, Array], None]


class _Recorded(NamedTuple):
    """The calls of one step, on arrays of their own, where they leave outputs and loss, and the
    settings they were chosen by, which they keep."""

    calls: Any
    results: tuple[Array, Array]
    settings: tuple[str, str]


class TrainingStep:
    """`value = step(inputs, targets)`, and the gradients of the parameters in `gradients`.

    `step(inputs, targets, see)` also calls see(outputs, value), for example to count what is right.
    When the step returns, the outputs of a model in `OVERWRITABLE` are gone: their gradient stands
    where they were.

    Calls of kernels are recorded for networks made of `RECORDABLE` layers, while all arrays of a
    step take no more than `MOST_BYTES`; then the next step writes into the outputs and the value of
    this one. Settings of the layers are those of the first batch of a shape; other arrays put in
    the place of a parameter are noticed. Of batches of many shapes those of late are kept. Where
    the loss is not finite, `gradients` are not to be used.
    """

    def __init__(self, model: Layer, loss: Loss, gradients: Mapping[str, Array]) -> None:
        self.model = model
        self.loss = loss
        self.gradients = gradients
        types = {type(loss), *(type(layer) for _, layer in walk(model))}
        self._records = kernels.native is not None and types <= RECORDABLE
        self._parameters = self._find_parameters()
        self._recorded: list[_Recorded] = []  # the last one repeated is the first

    def __call__(self, inputs: tuple[Array, ...], targets: Array, see: See | None = None) -> Array:
        if not self._records:
            return self._compute(inputs, targets, see)[1]
        outputs, value = self._repeat(inputs, targets)
        if see is not None:
            see(outputs, value)
        return value

    @property
    def recordings(self) -> int:
        """How many kinds of batches are recorded."""
        return len(self._recorded)

    @property
    def recorded_bytes(self) -> int:
        """The size of the arrays of all recordings; those that several share count for each."""
        return sum(recorded.calls.bytes for recorded in self._recorded)

    def _repeat(self, inputs: tuple[Array, ...], targets: Array) -> tuple[Array, Array]:
        """Outputs and loss by a recording, which is made where there is none."""
        if not self._has_same_parameters():
            self._recorded.clear()
        batch = (*inputs, targets)
        settings = dispatch.settings()[:2]
        try:
            for place, recorded in enumerate(self._recorded):
                if recorded.settings == settings and recorded.calls.replay(batch):
                    if place > 0:
                        self._recorded.insert(0, self._recorded.pop(place))
                    return recorded.results
        except IndexError:  # the op has the words for it
            return self._compute(inputs, targets)
        return self._record(batch, settings)

    def _compute(
        self, inputs: tuple[Array, ...], targets: Array, see: See | None = None
    ) -> tuple[Array, Array]:
        outputs, cache = self.model.forward(*inputs, training=True)
        value, loss_cache = self.loss.forward(outputs, targets)
        if see is not None:
            see(outputs, value)
        if math.isfinite(value):
            place = outputs if type(self.model) in OVERWRITABLE else None
            doutputs = self.loss.backward(loss_cache, out=place)
            self.model.backward(doutputs, cache, gradients=self.gradients, input_gradient=False)
        return outputs, value

    def _record(self, batch: tuple[Array, ...], settings: tuple[str, str]) -> tuple[Array, Array]:
        batch = tuple(np.array(array, order="C") for array in batch)
        calls = kernels.native.Recording(batch, MOST_BYTES)  # type: ignore[union-attr]
        calls.begin()
        try:
            results = self._compute(batch[:-1], batch[-1])
        finally:
            calls.end()
        if calls.why:
            self._records = False
        elif math.isfinite(results[1]):
            self._recorded.insert(0, _Recorded(calls, results, settings))
            while len(self._recorded) > MOST_RECORDINGS or (
                len(self._recorded) > 1 and self.recorded_bytes > MOST_BYTES_TOGETHER
            ):
                self._recorded.pop()
        return results

    def _has_same_parameters(self) -> bool:
        """If not, new ones are looked up, and the recordings are of no use."""
        same = all(getattr(layer, name) is array for layer, name, array in self._parameters)
        if not same:
            self._parameters = self._find_parameters()
        return same

    def _find_parameters(self) -> list[tuple[Layer, str, Array]]:
        return [
            (layer, name, getattr(layer, name))
            for _, layer in walk(self.model)
            for name in layer.parameter_names
        ]
