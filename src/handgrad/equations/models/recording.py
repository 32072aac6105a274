"""The two passes of a layer as programs in which a call of an op is one node."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from handgrad.dispatch import engine
from handgrad.equations.tracing import OPENED
from handgrad.layers import Embedding, Layer
from handgrad.program import Frame, Program, ProgramError, Recorder, Site
from handgrad.program.functions import is_array

#: The module of every op begins so; the modules beside them hold what ops share.
_OPS = "handgrad.ops."
#: What ops and their kernels share.
_SHARED = "handgrad.geometry."


class Recording(NamedTuple):
    """A layer's forward, and its backward for a gradient that came in.

    A node `<op>.forward` has the arguments of the call by name, a generator as it was before the
    call; its outputs are nodes `element` with the position in nested tuples. A node `<op>.backward`
    has the incoming gradient and the node of its forward, and an `element` for every gradient.
    """

    forward: Program
    backward: Program
    #: Other forms of the backward, such as a closed one.
    others: tuple[Program, ...]


def other_backwards(layer: Layer) -> Iterator[Callable[..., Any]]:
    """The methods `backward_…` that take a gradient and the cache, as backward does."""
    for name, method in inspect.getmembers(layer, inspect.ismethod):
        if name.startswith("backward_") and name != "backward_y":
            first, *others = inspect.signature(method).parameters
            if first.startswith("d") and others == ["cache"]:
                yield method


class LayerRecorder(Recorder):
    """Records a layer on its inputs, in training, with its ops as single nodes."""

    def __init__(self, layer: Layer, inputs: tuple[Any, ...]) -> None:
        super().__init__()
        self.layer = layer
        self.inputs = inputs
        self._returned: Any = None

    def recording(self, dy: Any, *, input_gradient: bool) -> Recording:
        """Both passes, for the gradient that comes in, on the reference engine.

        Raises ProgramError where a pass cannot be followed, and what the layer raises.
        """
        with engine("reference"):
            forward = self.run(self.layer.forward_y, *self.inputs, training=True)
            _, cache = self._returned
            backward = self.run(self.layer.backward_y, dy, cache, input_gradient=input_gradient)
            others = tuple(self.run(each, dy, cache) for each in other_backwards(self.layer))
        return Recording(forward, backward, others)

    def call(self, site: Site, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if getattr(function, "__func__", None) is Embedding.add_gradient:
            return self._add_gradient(site, function.__self__, *args)
        if not _is_whole(function):
            return super().call(site, function, *args, **kwargs)
        if not hasattr(function, "reference"):
            return self._library(site, function, args, kwargs)
        added = kwargs.pop("residual", None)
        if function.__name__ == "forward":
            y, cache = self._forward(site, function, args, kwargs)
            return self._plus(site, added, y), cache
        gradients = self._backward(site, function, args, kwargs)
        if isinstance(gradients, tuple):
            return (self._plus(site, added, gradients[0]), *gradients[1:])
        return self._plus(site, added, gradients)

    def _entered(self, frame: Frame, *args: Any) -> Any:
        self._returned = super()._entered(frame, *args)
        return self._returned

    def _forward(self, site: Site, function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        bound = inspect.signature(function.reference).bind(*args, **kwargs)
        bound.apply_defaults()
        given = {
            name: copy.deepcopy(value)
            if isinstance(value, np.random.Generator)
            else self.lift(value)
            for name, value in bound.arguments.items()
        }
        y, cache = function(*args, **kwargs)
        whole = self._new(_name(function), function, (), given, (y, cache), site)
        for position, array in _positions(y):
            if id(array) not in self._of:
                self._new("element", None, (whole, *position), {}, array, site)
        if isinstance(cache, tuple) and type(cache) is not tuple:
            self._of[id(cache)] = whole
            self._alive.append(cache)
        return y, cache

    def _backward(self, site: Site, function: Any, args: Any, kwargs: Any) -> Any:
        dy, cache = args
        if id(cache) not in self._of:
            raise ProgramError(f"{_name(function)} has a cache that no recorded forward made")
        arguments = self.lift(dy), self._of[id(cache)]
        found = function(dy, cache, **kwargs)
        several = found if isinstance(found, tuple) else (found,)
        whole = self._new(_name(function), function, arguments, {}, (several,), site)
        for position, gradient in enumerate(several):
            if is_array(gradient) and id(gradient) not in self._of:
                self._new("element", None, (whole, position), {}, gradient, site)
        return found

    def _plus(self, site: Site, added: Any, value: Any) -> Any:
        return value if added is None else self.operate(site, "add", added, value)

    def _add_gradient(self, site: Site, table: Embedding, dy: Any, cache: Any, total: Any) -> Any:
        """The sum that `Embedding.add_gradient` makes without touching the whole table."""
        return self.augment(site, "add", total, self.call(site, table.op.backward, dy, cache))


def _is_whole(function: Any) -> bool:
    """True for a function that is one node: of an op, or of what ops share."""
    if not inspect.isfunction(function) or function.__name__ in OPENED:
        return False
    return function.__module__.startswith((_OPS, _SHARED))


def _name(function: Callable[..., Any]) -> str:
    module = function.__module__.removeprefix(_OPS).removeprefix(_SHARED)
    return f"{module}.{function.__name__}"


def _positions(value: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every array in nested tuples with the way to it."""
    if isinstance(value, tuple):
        for i, each in enumerate(value):
            for position, array in _positions(each):
                yield (i, *position), array
    elif is_array(value):
        yield (), value
