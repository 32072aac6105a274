"""Runs of a forward and a backward in which sizes, settings and counters are nodes as well.

A number of Python has no identity that a node could belong to, so it is handed on as an `Int` or a
`Float`, which computes like it. What helper functions of the ops compute is one node each, by the
function's name, but for those whose body says more than their name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, GeneratorType, MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.equations.shaping import SHAPING
from handgrad.equations.subject import Subject
from handgrad.errors import ArgumentError
from handgrad.program import Node, Program, Recorder, Site
from handgrad.program.functions import is_array
from handgrad.program.instrument import followed
from handgrad.program.nodes import ProgramError
from handgrad.program.recorder import Operation

#: Helpers of the ops of which the body says more than the name.
_OPENED: Final = frozenset(
    {"active_steps", "in_running_order", "in_time_order", "masked", "within", "zero_state"}
)
#: Functions of Python that give a number as it is.
_AS_IT_IS: Final = (int, float)
#: Operations that are the same computation, or none.
_UNSEEN: Final = SHAPING | {"size", "element", "counter", "input"}


class Int(int):
    """A whole number with an identity of its own."""


class Float(float):
    """A number with an identity of its own."""


class LoopItem(tuple[Any, ...]):
    """A tuple with an identity of its own: the item of a loop that has one name."""


class Runs(NamedTuple):
    """The programs of a forward and its backward."""

    forward: Program
    backward: Program
    #: The ends of every range, as (start, stop), by its place in the source.
    ranges: Mapping[Site, tuple[Any, ...]]
    #: The objects that other loops go through.
    iterables: Mapping[Site, Any]
    #: Of every round of a loop, the nodes of what it counts with.
    counters: Mapping[tuple[Any, ...], list[Node]]

    @property
    def incoming(self) -> Any:
        """The gradient that comes into backward, in terms of nodes."""
        arguments = self.backward.arguments.items()
        return next(value for name, value in arguments if name != "self")


class NotesRecorder(Recorder):
    """Records a forward and a backward as notes show them."""

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[tuple[int, int], Int] = {}
        self._ranges: dict[int, tuple[Any, ...]] = {}
        self.ranges: dict[Site, tuple[Any, ...]] = {}
        self.iterables: dict[Site, Any] = {}
        self.counters: dict[tuple[Any, ...], list[Node]] = {}
        #: The result of forward, in the objects that backward takes.
        self.returned: Any = None

    def runs(self, subject: Subject, dy: Any = None) -> Runs:
        """Both passes on the inputs of a subject; `dy` in the place of its cotangent."""
        given = {**subject.arrays, **subject.fresh_options()}
        forward = self.traced(subject.forward, (), given)
        y, cache = outputs(subject.forward, self.returned)
        if dy is None:
            dy = np.ones_like(y) if subject.cotangent is None else subject.cotangent
        elif callable(dy):
            dy = dy(y)
        backward = self.traced(subject.backward, (dy, cache), {})
        return Runs(forward, backward, self.ranges, self.iterables, self.counters)

    def forward(self, subject: Subject) -> Any:
        """The result of forward."""
        self.traced(subject.forward, (), {**subject.arrays, **subject.fresh_options()})
        return self.returned

    def traced(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Program:
        """The program of one function. Raises ArgumentError where it fails."""
        name = getattr(function, "__name__", "the function")
        plain = inspect.unwrap(function)
        try:
            followed(getattr(plain, "__func__", plain), self)
        except ProgramError as error:
            raise ArgumentError(f"notes: {error}") from None
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = {key: _boxed(value) for key, value in bound.arguments.items()}
            bound.arguments.update(arguments)
            return self.run(function, *bound.args, **bound.kwargs)
        except Exception as error:
            raise ArgumentError(
                f"notes: {name} fails on these inputs: {type(error).__name__}: {error}"
            ) from None

    # Nodes

    def lift(self, value: Any) -> Any:
        if isinstance(value, LoopItem) and id(value) in self._of:
            return self._of[id(value)]
        if isinstance(value, tuple):
            parts = [self.lift(each) for each in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if type(value) is list:
            return [self.lift(each) for each in value]
        if type(value) is dict:
            return {key: self.lift(each) for key, each in value.items()}
        if isinstance(value, slice):
            return slice(*map(self.lift, (value.start, value.stop, value.step)))
        return self._node(value)

    def _node(self, value: Any) -> Any:
        if type(value) is float and id(value) not in self._of:
            name = self._known_name(value)
            if name.strip("_").isupper():
                return self._input(value, name, None)
        return super()._node(value)

    def _argument(self, value: Any, name: str) -> Any:
        if isinstance(value, Int | Float):
            return self._of.get(id(value)) or self._input(value, name, None)
        return super()._argument(value, name)

    def _kept(self, value: Any, lifted: Any) -> Any:
        return _boxed(value) if isinstance(value, int | float | np.bool_) else value

    def _entered(self, frame: Any, function: Any, args: Any, kwargs: Any) -> Any:
        found = super()._entered(frame, function, args, kwargs)
        if frame.caller is None:
            self.returned = found
        return found

    # Numbers

    def attribute(self, site: Site, owner: Any, name: str) -> Any:
        if is_array(owner) and name == "shape":
            return tuple(self._size(site, owner, axis) for axis in range(len(owner.shape)))
        return super().attribute(site, owner, name)

    def _size(self, site: Site, owner: Any, axis: int) -> Int:
        known = self._sizes.get((id(owner), axis))
        if known is None or known != owner.shape[axis]:
            known = self._sizes[id(owner), axis] = Int(owner.shape[axis])
            self._new("size", _size_of, (self._node(owner), axis), {}, known, site)
        return known

    def _item(self, site: Site, item: Any, names: Any) -> Any:
        boxed = _several(item, names)
        self._count(site, boxed, names)
        return boxed

    def _count(self, site: Site, item: Any, names: Any) -> None:
        """Nodes for the numbers of a round, by the names that take them."""
        if isinstance(names, tuple) and isinstance(item, tuple):
            for one, name in zip(item, names, strict=False):
                self._count(site, one, name)
        elif isinstance(item, Int | LoopItem) and id(item) not in self._of:
            node = self._new("counter", None, (), {}, item, site, str(names))
            self.counters.setdefault((self._frame, self._rounds), []).append(node)
        if isinstance(item, LoopItem):
            for position, part in enumerate(item):
                whole = self._of[id(item)]
                if id(part) not in self._of:
                    self._new("element", None, (whole, position), {}, part, site)

    def loop(self, site: Site, iterable: Any, names: Any) -> Iterator[Any]:
        known = self._ranges.get(id(iterable))
        if known is not None:
            self.ranges.setdefault(site, known)
        elif id(iterable) in self._of:
            self.iterables.setdefault(site, self._of[id(iterable)])
        return super().loop(site, iterable, names)

    def call(self, site: Site, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if _is_helper(function):
            return self._named(site, function, args, kwargs)
        found = super().call(site, function, *args, **kwargs)
        if type(getattr(function, "__self__", None)) is list and args:
            name = site.text.partition(".")[0]
            if function.__name__ in ("append", "insert") and name.isidentifier():
                self._assign(name, [self.lift(args[-1])], site)
        return found

    def store(self, site: Site, owner: Any, index: Any, value: Any) -> None:
        super().store(site, owner, index, value)
        name = site.text.partition("[")[0]
        if type(owner) in (dict, list) and name.isidentifier():
            self._assign(name, [self.lift(value)], site)

    def _named(self, site: Site, function: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """A helper of the ops as one node."""
        found = function(*args, **kwargs)
        if any(found is each for each in args) or not _is_data(found):
            return found
        operands = self.lift(args), self.lift(kwargs)
        found = _boxed(found, self._of)
        if isinstance(found, tuple | list):
            if isinstance(found, tuple) and self._is_known(found):
                return found
            parts = list(in_order(found)) if isinstance(found, tuple) else []
            whole = self._new(function.__name__, function, *operands, found, site)
            for i, each in enumerate(parts):
                if (is_array(each) or isinstance(each, Int | Float)) and id(each) not in self._of:
                    self._new("element", None, (whole, i), {}, each, site)
            return found
        if id(found) not in self._of:
            self._new(function.__name__, function, *operands, found, site)
        return found

    def _is_known(self, value: Any) -> bool:
        return all(id(each) in self._of for each in in_order(value))

    def _library(self, site: Site, function: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        args = tuple(list(a) if isinstance(a, GeneratorType) else a for a in args)
        if function is range:
            found = range(*args)
            if found.step == -1:
                self._keep_range(found, (found.start + 1, found.stop + 1))
            elif found.step == 1:
                self._keep_range(found, self.lift(args[:2] if len(args) > 1 else (0, *args)))
            return found
        if function is reversed and id(args[0]) in self._ranges:
            start, stop = self._ranges[id(args[0])]
            turned = super()._library(site, function, args, kwargs)
            self._keep_range(turned, (stop, start))
            return turned
        if (
            function in _AS_IT_IS
            and args
            and id(args[0]) in self._of
            and args[0] == function(*args)
        ):
            return args[0]
        if function is len and args and is_array(args[0]):
            return self._size(site, args[0], 0)
        return super()._library(site, function, args, kwargs)

    def _keep_range(self, found: Any, ends: tuple[Any, ...]) -> None:
        self._ranges[id(found)] = ends
        self._alive.append(found)

    def _sum(self, site: Site, items: Any, start: Any = 0) -> Any:
        parts = list(self._items(site, items))
        if start != 0 or not any(map(is_array, parts)):
            return super()._sum(site, parts, start)
        return self._apply(Operation(site, "total", _total, (parts,)))


def output(subject: Subject) -> Any:
    """The output of forward, without its cache. Raises ArgumentError where it fails."""
    return outputs(subject.forward, NotesRecorder().forward(subject))[0]


def path(subject: Subject) -> list[Any]:
    """The operations on the way through both functions: alike for inputs with like equations."""
    runs = NotesRecorder().runs(subject)
    nodes = (*runs.forward.nodes, *runs.backward.nodes)
    return list(dict.fromkeys((each.site, each.op) for each in nodes if each.op not in _UNSEEN))


def outputs(forward: Callable[..., Any], result: Any) -> tuple[Any, Any]:
    """The output and the cache that forward returned. Raises ArgumentError for anything else."""
    if isinstance(result, tuple) and len(result) == 2:
        return result
    found = f"{len(result)} things" if isinstance(result, tuple) else f"a {type(result).__name__}"
    name = getattr(forward, "__name__", "forward")
    raise ArgumentError(f"notes: {name} returns {found}; allowed: two things, y and a cache")


def _total(parts: list[Any]) -> Any:
    return sum(parts)


def _size_of(array: Any, axis: int) -> int:
    return int(array.shape[axis])


def _boxed(value: Any, known: Mapping[int, Node] = MappingProxyType({})) -> Any:
    """The value with an identity of its own for every number in it that has no node."""
    if id(value) in known:
        return value
    if type(value) is int:
        return Int(value)
    if type(value) is float:
        return Float(value)
    if isinstance(value, np.bool_):
        return np.asarray(value)
    if type(value) is tuple:
        return tuple(_boxed(each, known) for each in value)
    return value


def in_order(value: Any) -> Iterator[Any]:
    """The parts of nested tuples, such as (y, (h, c)), in order, also where they are None."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from in_order(each)
    else:
        yield value


def _several(item: Any, names: Any) -> Any:
    """The item of a loop with its numbers boxed; a tuple under one name stays together."""
    if isinstance(names, tuple) and isinstance(item, tuple):
        return tuple(_several(one, name) for one, name in zip(item, names, strict=False))
    if type(item) is tuple and item and all(isinstance(each, int) for each in item):
        return LoopItem(map(_boxed, item))
    return Int(item) if type(item) is int else item


def _is_helper(function: Any) -> bool:
    """A function of this package that is not followed."""
    plain = inspect.unwrap(getattr(function, "reference", function)) if callable(function) else None
    if not isinstance(plain, FunctionType) or not plain.__module__.startswith("handgrad."):
        return False
    return plain.__name__ not in _OPENED and not plain.__name__.startswith("backward")


def _is_data(found: Any) -> bool:
    if isinstance(found, ModuleType | str | bool) or found is None:
        return False
    return is_array(found) or isinstance(found, int | float | tuple | list)
