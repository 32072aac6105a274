"""Runs of a forward and a backward in which sizes, settings and counters are nodes as well.

A number of Python has no identity that a node could belong to, so it is handed on as an `Int` or a
`Float`, which computes like it. What helper functions of the ops compute is one node each, by the
function's name, but for those whose body says more than their name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from types import FunctionType, GeneratorType, MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.equations.dimensions import axes_of
from handgrad.equations.lettered import Computer, plain, sizes_of, traced, traced_like
from handgrad.equations.shaping import SHAPING, axis_of, shape, whole_number
from handgrad.equations.subject import Subject, parameters
from handgrad.errors import ArgumentError
from handgrad.program import Node, Program, Recorder, Site
from handgrad.program.functions import is_array
from handgrad.program.instrument import followed
from handgrad.program.node import within, world
from handgrad.program.nodes import ProgramError
from handgrad.program.recorder import Operation
from handgrad.program.sizes import Size
from handgrad.program.trace import TracedInt, Tracer

#: Helpers of the ops of which the body says more than the name.
OPENED: Final = frozenset(
    {
        *("active_steps", "angles", "in_running_order", "in_time_order", "masked", "table"),
        *("within", "zero_state"),
    }
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
    """Records a forward and a backward as notes show them.

    compute: what does the operations where the run is one in letters.
    """

    def __init__(self, compute: Computer | None = None) -> None:
        super().__init__()
        self._compute = compute
        self._sizes: dict[tuple[int, int], Any] = {}
        #: Sizes of axes that were gone through, by their lengths.
        self._iterated: dict[int, Size] = {}
        self._ranges: dict[int, tuple[Any, ...]] = {}
        self.ranges: dict[Site, tuple[Any, ...]] = {}
        self.iterables: dict[Site, Any] = {}
        self.counters: dict[tuple[Any, ...], list[Node]] = {}
        #: The result of forward, in the objects that backward takes.
        self.returned: Any = None

    def runs(self, subject: Subject, sizes: Mapping[str, Any] = MappingProxyType({})) -> Runs:
        """Both passes on the inputs of a subject; `sizes` are those of inputs in letters."""
        given = {**subject.arrays, **subject.fresh_options()}
        with nullcontext() if self._compute is None else within(self._compute.world):
            for name, each in sizes.items():
                is_size = isinstance(each, Size)
                given[name] = TracedInt(given[name], each) if is_size else traced(given[name], each)
            forward = self.traced(subject.forward, (), given)
            y, cache = outputs(subject.forward, self.returned)
            self._name_axes(y, parameters(subject.backward)[0].shape)
            dy = np.ones_like(plain(y)) if subject.cotangent is None else subject.cotangent
            backward = self.traced(subject.backward, (traced_like(dy, y), cache), {})
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

    # Values in letters

    def _computed(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if self._compute is None:
            return function(*args, **kwargs)
        return self._compute(function, args, kwargs)

    def _new(self, op: str, function: Any, args: Any, *rest: Any) -> Node:
        node = super()._new(op, function, args, *rest)
        if type(node.value) is Tracer and op in ("stack", "concat", "asarray"):
            self._count_rounds(node, node.value)
        if self._compute is not None:
            node.sizes, node.value = sizes_of(node.value), _unboxed(node, node.value)
        return node

    def _name_axes(self, y: Any, annotation: str) -> None:
        """Give an output letters where its sizes are known as numbers alone."""
        if type(y) is Tracer:
            lengths = dict(world().lengths)
            letters = axes_of(annotation, np.shape(plain(y)), lengths) or ()
            sizes = tuple(
                Size.of(letter) if letter in world().lengths and size.constant else size
                for letter, size in zip(letters, y.node.shape, strict=False)
            )
            if sizes:
                y.node.shape = self._of[id(y)].sizes = sizes

    def _count_rounds(self, node: Node, joined: Tracer) -> None:
        """Give an axis along which a loop's arrays are joined the number of its rounds."""
        items = node.args[0]
        if not isinstance(items, tuple | list) or not all(isinstance(e, Node) for e in items):
            return
        made = [each for each in items if len(each.rounds) == 1]
        loops = {each.rounds[0].loop for each in made}
        count = self._rounds_of(loops.pop(), len(made)) if len(loops) == 1 else None
        if count is None:
            return
        sizes, axis = list(joined.node.shape), axis_of(node)
        each = Size.of(1) if len(sizes) > len(shape(made[0])) else shape(made[0])[axis]
        sizes[axis] = sizes[axis] + each * (count - count.number(world().lengths))
        if joined.node.shape[axis].constant is not None:
            joined.node.shape = tuple(sizes)

    def _rounds_of(self, loop: Site, number: int) -> Size | None:
        """The number of rounds of a loop in letters, of which one may have gone into no array."""
        if loop not in self.ranges:
            return self._iterated.get(number)
        first, last = (whole_number(each) for each in self.ranges[loop])
        count = last - first if (last - first).number(world().lengths) > 0 else first - last
        return count if count.number(world().lengths) - number in (0, 1) else None

    def _items(self, site: Site, iterable: Any) -> Any:
        if type(iterable) is Tracer and iterable.ndim:
            size = iterable.node.shape[0]
            self._iterated[world().length(size)] = size
        return super()._items(site, iterable)

    def _owner(self, array: Any) -> Any:
        if type(array) is not Tracer:
            return super()._owner(array)
        while array._base is not None:
            array = array._base
        return array

    def _memory(self, array: Any) -> np.ndarray:
        return super()._memory(array.node.value if type(array) is Tracer else array)

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
        if type(value) is TracedInt and id(value) not in self._of:
            return self._new("size", None, (), {}, value, None)
        return super()._node(value)

    def _argument(self, value: Any, name: str) -> Any:
        if isinstance(value, Int | Float) or type(value) is TracedInt:
            return self._of.get(id(value)) or self._input(value, name, None)
        return super()._argument(value, name)

    def _kept(self, value: Any, lifted: Any) -> Any:
        if type(value) is Tracer and isinstance(plain(value), bool | np.bool_):
            value.node.value = np.asarray(plain(value))
        if type(value) in (Tracer, TracedInt):
            return value
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

    def _size(self, site: Site, owner: Any, axis: int) -> Any:
        known, size = self._sizes.get((id(owner), axis)), owner.shape[axis]
        if known is None or plain(known) != plain(size):
            known = self._sizes[id(owner), axis] = Int(size) if type(size) is int else size
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
        found = self._computed(function, args, kwargs)
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
                is_data = is_array(each) or isinstance(each, Int | Float)
                is_data = is_data or type(each) is TracedInt
                if is_data and id(each) not in self._of:
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
            and plain(args[0]) == function(plain(args[0]))
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


def _unboxed(node: Node, value: Any) -> Any:
    """The value of a node of a run in letters, as it is in a run of numbers."""
    if type(value) is TracedInt:
        return Int(value.value)
    value = plain(value)
    if isinstance(value, np.generic | int | float) and type(value) is not bool:
        of_numbers = node.operands and all(isinstance(e.value, Int | Float) for e in node.operands)
        is_numpy = (getattr(node.function, "__module__", "") or "").startswith("numpy")
        if of_numbers and not is_numpy and np.asarray(value).dtype.kind in "if":
            return _boxed(value.item() if isinstance(value, np.generic) else value)
        return value if isinstance(value, Int | Float) else np.asarray(value)[()]
    return np.asarray(value) if isinstance(value, bool | np.bool_) else value


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
    return plain.__name__ not in OPENED and not plain.__name__.startswith("backward")


def _is_data(found: Any) -> bool:
    if isinstance(found, ModuleType | str | bool) or found is None:
        return False
    return is_array(found) or isinstance(found, int | float | tuple | list)
