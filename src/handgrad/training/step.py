"""One batch's loss and gradients; those of a small network by replaying captured calls of kernels.

Most of a small network's step is Python: what finds the kernels, checks the shapes and makes the
arrays. It comes to the same for every batch of one shape. The first of them therefore leaves a
capture, the list of its kernels' calls with their arguments, as a CUDA graph is; for the next, its
numbers are copied to where the first one's were and the calls are made again, in one native call.
The same kernels read and write arrays of the same sizes, so the results are the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad import dispatch, kernels
from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import Layer, walk
from handgrad.layers.flat import check_same_arrays
from handgrad.losses import Loss

#: A capture keeps the arrays of its step, which the memory of a larger network is too good for:
#: there Python is a small part of the time.
MOST_BYTES: Final = 8 << 20
#: All captures of a step together take no more: those that were not replayed for the longest time
#: make room for others. Their number is bounded since a batch is compared with one after another.
MOST_BYTES_TOGETHER: Final = 32 << 20
MOST_CAPTURES: Final = 16

#: Is called with the outputs and the loss; a number that it returns is what the loss counts times.
See = Callable[[Array, Array], float | None]


class _Captured(NamedTuple):
    """The calls of one step, on arrays of their own, the outputs and the loss that they write, and
    the settings they were chosen by, which they keep."""

    calls: Any
    results: tuple[Array, Array]
    settings: tuple[str, str]


class TrainingStep:
    """`value = step(inputs, targets)`, and the gradients of the parameters in `gradients`.

    `targets` is an array, or a tuple of all that the loss takes behind the outputs, such as the
    weights of `losses.Weighted`. `step(inputs, targets, see)` also calls see(outputs, value), for
    example to count what is right; where that returns a number, the gradients are of the loss times
    that number.
    When the step returns, the outputs of a model that declares `backward_reads_output = False` are
    gone: their gradient stands where they were.

    Calls of kernels are captured if the loss and all layers declare `capturable`, while all arrays
    of a step take no more than `MOST_BYTES`; then the next step writes into the outputs and the
    value of this one. Another value of an attribute of a layer or of the loss, or of a table there,
    is noticed: the next batch is captured anew. Of batches of many shapes those of late
    are kept. Where the loss is not finite, `gradients` are not to be used.

    Raises ArgumentError for a model that is no layer, gradients that are not an array for every
    parameter (ShapeError for one of another shape), and inputs that are in no tuple; ShapeError for
    a loss that is more than one number.
    """

    def __init__(self, model: Layer, loss: Loss, gradients: Mapping[str, Array]) -> None:
        if not isinstance(model, Layer):
            raise ArgumentError(f"TrainingStep: model is {shown(model)}; allowed: a layer")
        check_same_arrays("TrainingStep: gradients", model.parameters, gradients)
        self.model = model
        self.loss = loss
        self.gradients = gradients
        # The loss may be any object with forward and backward.
        self._capturable = (
            kernels.native is not None
            and getattr(loss, "capturable", False)
            and all(_can_be_watched(layer) for _, layer in walk(model))
        )
        self._attributes = self._find_attributes()
        self._captured: list[_Captured] = []  # the last one replayed is the first

    def __call__(
        self,
        inputs: tuple[Array, ...],
        targets: Array | tuple[Array, ...],
        see: See | None = None,
    ) -> Array:
        if not isinstance(inputs, tuple):
            raise ArgumentError(
                f"TrainingStep: inputs is {shown(inputs)}; allowed: the model's inputs in a tuple"
            )
        if not isinstance(targets, tuple):
            targets = (targets,)
        if not self._capturable:
            return self._compute(inputs, targets, see)[1]
        outputs, value = self._replay(inputs, targets)
        factor = None if see is None else see(outputs, value)
        if factor is not None and factor != 1:
            for gradient in self.gradients.values():
                gradient *= factor
        return value

    @property
    def captures(self) -> int:
        """The number of kinds of batches that are captured."""
        return len(self._captured)

    @property
    def captured_bytes(self) -> int:
        """The size of the arrays of all captures; those that several share count for each."""
        return sum(captured.calls.bytes for captured in self._captured)

    def _replay(self, inputs: tuple[Array, ...], targets: tuple[Array, ...]) -> tuple[Array, Array]:
        """Outputs and loss by a capture, which is made where there is none for plain arrays."""
        if not self._has_same_attributes():
            self._captured.clear()
        batch = (*inputs, *targets)
        settings = dispatch.current_settings()[:2]
        try:
            for i, captured in enumerate(self._captured):
                if captured.settings == settings and captured.calls.replay(batch):
                    if i > 0:
                        self._captured.insert(0, self._captured.pop(i))
                    return captured.results
        except IndexError:  # the op has the words for it
            return self._compute(inputs, targets)
        if not all(type(each) is np.ndarray and each.dtype.kind in "biuf" for each in batch):
            return self._compute(inputs, targets)
        return self._capture(batch, len(inputs), settings)

    def _compute(
        self, inputs: tuple[Array, ...], targets: tuple[Array, ...], see: See | None = None
    ) -> tuple[Array, Array]:
        outputs, cache = self.model.forward(*inputs, training=True)
        value, loss_cache = self.loss.forward(outputs, *targets)
        if getattr(value, "shape", ()) != ():
            raise ShapeError(
                f"TrainingStep: the loss has shape {value.shape}; allowed: one number, as by "
                f"reduction='mean'"
            )
        factor = None if see is None else see(outputs, value)
        counts_once = factor is None or factor == 1
        dvalue = None if counts_once else np.full((), factor, value.dtype)
        if math.isfinite(value):
            # A replay writes the outputs before anybody has seen them, so they have to last.
            overwrites = not (self._capturable or self.model.backward_reads_output)
            doutputs = self._doutputs(loss_cache, dvalue, outputs if overwrites else None)
            self.model.backward(doutputs, cache, gradients=self.gradients, input_gradient=False)
        return outputs, value

    def _doutputs(self, cache: Any, dvalue: Array | None, out: Array | None) -> Array:
        """The gradient of the outputs; a loss of the user's may take no gradient of its own."""
        if dvalue is None:
            return self.loss.backward(cache, out=out)
        return self.loss.backward(cache, dvalue, out=out)

    def _capture(
        self, batch: tuple[Array, ...], inputs: int, settings: tuple[str, str]
    ) -> tuple[Array, Array]:
        """Outputs and loss of a batch whose first `inputs` arrays are those of the model."""
        batch = tuple(np.array(array, order="C") for array in batch)
        calls = kernels.native.Capture(batch, MOST_BYTES)  # type: ignore[union-attr]
        calls.begin()
        try:
            results = self._compute(batch[:inputs], batch[inputs:])
        finally:
            calls.end()
        if calls.reason:
            self._capturable = False
        elif math.isfinite(results[1]):
            self._captured.insert(0, _Captured(calls, results, settings))
            while len(self._captured) > MOST_CAPTURES or (
                len(self._captured) > 1 and self.captured_bytes > MOST_BYTES_TOGETHER
            ):
                self._captured.pop()
        return results

    def _has_same_attributes(self) -> bool:
        """If not, such as after a callback, all captures are of other settings."""
        same: bool = kernels.native.hold_same(*self._attributes)  # type: ignore[union-attr]
        if not same:
            self._attributes = self._find_attributes()
        return same

    def _find_attributes(self) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]]]:
        """The attributes of the loss and all layers, and the tables among them: these tables, and
        the values of each.

        They are compared by `is`, so that a value set again at worst costs another capture.
        """
        owners = [self.loss, *(layer for _, layer in walk(self.model))]
        tables = [vars(owner) for owner in owners if hasattr(owner, "__dict__")]
        tables += [value for table in tables for value in table.values() if type(value) is dict]
        return tables, [tuple(table.values()) for table in tables]


def _can_be_watched(layer: Layer) -> bool:
    """Return whether another array in the place of a parameter is seen among the attributes."""
    return layer.capturable and vars(layer).keys() >= set(layer.parameter_names)
