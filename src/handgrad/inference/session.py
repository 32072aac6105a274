"""A model that answers one small batch after another, without Python between its kernels.

The first batch of a shape leaves a capture, the list of its kernels' calls; for the next its
numbers are copied to where the first one's were and the calls are made again, in one native call,
as a `TrainingStep` does with forward and backward.
"""

from __future__ import annotations

import copy
from threading import Lock
from typing import Any, Final

import numpy as np

from handgrad import dispatch, kernels
from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers.base import Layer, walk

#: Shapes whose captures are kept; those not replayed for the longest time make room for others.
MOST_CAPTURES: Final = 16
#: A capture keeps the arrays between the layers. Beyond this Python is a small part of the time.
MOST_BYTES: Final = 256 << 20


class Session:
    """`y = session(x)` is `model(x)`, of a recurrent layer y alone, with little around the kernels.

    The session works on a copy of the model as it is when the session is made, because kernels
    bring weights into another order once and for all: what is trained later takes a new session.
    Replayed are inputs of a shape that came before, as arrays in C order in the type of the
    parameters, or tokens, at the precision that was in force then; all else goes through forward.
    Calls from several threads take turns.

    Raises ArgumentError for a model that is no layer, and what the model's forward raises.
    """

    def __init__(self, model: Layer) -> None:
        if not isinstance(model, Layer):
            raise ArgumentError(f"Session: model is {shown(model)}; allowed: a layer")
        self.model = copy.deepcopy(model)
        #: The reason for which the last call went through forward; "" while calls are replayed.
        self.reason = _reason(model)
        self._replays = not self.reason
        self._captured: list[tuple[Any, Array]] = []  # the last one replayed is the first
        self._lock = Lock()

    def __call__(self, *inputs: Array) -> Array:
        with self._lock:
            for i, (calls, y) in enumerate(self._captured):
                try:
                    replayed = calls.replay(inputs)
                except IndexError:  # a token outside of the table, which forward has the words for
                    break
                if replayed:
                    if i > 0:
                        self._captured.insert(0, self._captured.pop(i))
                    return y.copy()
            return self._first(inputs)

    def _first(self, inputs: tuple[Array, ...]) -> Array:
        """y of inputs that come for the first time in their shape, or are not replayed at all."""
        plain = all(type(each) is np.ndarray and each.dtype.kind in "biuf" for each in inputs)
        if not self._replays or not plain or dispatch.get_engine() == "reference":
            return self._forward(inputs)
        batch = tuple(np.array(each, order="C") for each in inputs)
        calls = kernels.native.Capture(batch, MOST_BYTES, frozen=True)  # type: ignore[union-attr]
        calls.begin()
        try:
            y = self._forward(batch)
        finally:
            calls.end()
        self.reason = calls.reason
        if not self.reason:
            self._captured.insert(0, (calls, y))
            del self._captured[MOST_CAPTURES:]
        return y.copy()

    def _forward(self, inputs: tuple[Array, ...]) -> Array:
        y, _ = self.model.forward_y(*inputs, training=False)
        return y

    @property
    def captures(self) -> int:
        """The number of shapes that are replayed."""
        return len(self._captured)


def _reason(model: Layer) -> str:
    if kernels.native is None:
        return f"there are no kernels: {kernels.reason}"
    for name, layer in walk(model):
        if not (layer.capturable or layer.forward_capturable):
            return f"{name or 'the model'}, a {type(layer).__name__}, does more than call kernels"
    return ""
