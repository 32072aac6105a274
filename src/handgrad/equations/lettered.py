"""A run in letters: its arrays are tracers, so that every size knows the letters it is made of."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, Final

import array_api_compat
import numpy as np

from handgrad.program import loops as loops
from handgrad.program import mapped, node
from handgrad.program import primitives as primitives
from handgrad.program.array_api import STAND_INS
from handgrad.program.marking import EACH, MADE
from handgrad.program.node import World
from handgrad.program.rebinding import Rebinder
from handgrad.program.sizes import Size
from handgrad.program.standins import BUILTINS, is_function, shown_function
from handgrad.program.trace import TracedInt, Tracer

Shape = tuple[Size, ...]

#: Functions of Python that a loop goes through.
_LOOPING: Final = ("range", "zip", "enumerate", "reversed", "map", "iter")
#: Functions of the array API by what gives the same on tracers.
_STAND_INS: Final[dict[Any, Callable[..., Any]]] = {
    **STAND_INS,
    array_api_compat.array_namespace: lambda *_arrays, **_options: np,
}


def traced(value: Any, sizes: Shape) -> Tracer:
    """An array of a run in letters."""
    array = np.asarray(value)
    kind = array.dtype.kind.replace("u", "i")
    return Tracer(node.Node("input", (), {}, sizes, kind, array))


def traced_like(value: Any, like: Any) -> Any:
    """Arrays with the sizes of others of the same shapes, in the same tuples."""
    if isinstance(like, tuple | list) and isinstance(value, tuple | list):
        return tuple(traced_like(*each) for each in zip(value, like, strict=True))
    if type(like) is not Tracer or value is None or np.shape(value) != np.shape(plain(like)):
        return value
    return traced(value, like.node.shape)


def plain(value: Any) -> Any:
    """The values of a run, without letters."""

    def number(each: Any) -> Any:
        if type(each) is TracedInt:
            return each.value
        return each.held.value if type(each) is Tracer else each

    return mapped(number, value)


def sizes_of(value: Any) -> Shape | None:
    """The sizes of the axes of an array, or a whole number by itself."""
    if type(value) is TracedInt:
        return (value.size,)
    return value.node.shape if type(value) is Tracer else None


class _Helpers(Rebinder):
    """Copies of the ops' helpers, whose loops stay those of Python."""

    def _scope(self, function: FunctionType) -> dict[str, Any]:
        scope = super()._scope(function)
        own = {name: vars(builtins)[name] for name in _LOOPING}
        scope |= {EACH: _same, MADE: _same, "__builtins__": {**scope["__builtins__"], **own}}
        return scope


def _same(value: Any) -> Any:
    return value


class Computer:
    """Does operations on tracers; what its world notes are the sizes that have to be equal."""

    def __init__(self, lengths: Mapping[str, int]) -> None:
        self.world = World()
        self.world.lengths |= lengths
        self.world.events = []
        self._helpers = _Helpers()

    def __call__(self, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
        """The result of a function of a library, or of a helper of the ops."""
        name = getattr(function, "__name__", "")
        if callable(function) and function in _STAND_INS:
            return _STAND_INS[function](*args, **kwargs)
        is_random = str(getattr(function, "__module__", "")).startswith("numpy.random")
        if is_function(function) and not is_random:
            kwargs = {key: each for key, each in kwargs.items() if key != "device"}
            function = shown_function(function)
        elif name in BUILTINS and vars(builtins).get(name) is function:
            function = BUILTINS[name]
        elif isinstance(function, FunctionType):
            function = self._helpers.shown(function)
        found = function(*args, **kwargs)
        return _drawn(found, args) if type(found) is np.ndarray else found

    def equalities(self) -> Iterator[tuple[Size, Size]]:
        """The sizes that the run took to be equal."""
        for relation, left, right, outcome in self.world.guards:
            if relation == "==" and outcome:
                yield left, right
        for event in self.world.events or ():
            relation, outcome = (event.attrs.get(key) for key in ("relation", "outcome"))
            if (relation, outcome) in (("__eq__", True), ("__ne__", False)):
                yield event.attrs["left"], event.attrs["right"]


def _drawn(found: np.ndarray, args: Any) -> Any:
    """An array drawn at random, in the sizes that it was asked for."""
    for each in args:
        sizes = each if isinstance(each, tuple) else (each,)
        if any(type(size) is TracedInt for size in sizes) and plain(sizes) == found.shape:
            shape = (size.size if type(size) is TracedInt else Size.of(size) for size in sizes)
            return traced(found, tuple(shape))
    return found
