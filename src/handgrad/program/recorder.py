"""The run of an instrumented function, kept as nodes.

Arrays stay the arrays they are: a node belongs to an object, by its identity. An array that is
written to has a new node from then on, as have the views of its memory.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import FunctionType, GeneratorType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.program.arithmetic import FUNCTIONS, IN_PLACE
from handgrad.program.arranging import ATTRIBUTES
from handgrad.program.functions import (
    Attribute,
    Method,
    OnCopy,
    comes_from_library,
    copied,
    element,
    getitem,
    is_array,
    is_library,
    library_function,
    replaced,
    standard_name,
    store,
    written_argument,
)
from handgrad.program.instrument import follows
from handgrad.program.nodes import (
    Assignment,
    Branch,
    Frame,
    Node,
    Program,
    Round,
    Site,
    leaves,
    mapped,
)

#: Attributes of an array that are arrays of the same values.
_VIEWS: Final = {**ATTRIBUTES, "real": "real", "imag": "imag"}
#: Functions of Python that go through what they are given, item by item.
_ITERATE: Final = frozenset({"zip", "enumerate", "reversed", "list", "tuple", "iter", "map"})
#: Those that need all items, so that a generator can be read before them.
_TAKE_ALL: Final = frozenset({"sum", "max", "min", "list", "tuple", "sorted", "set", "dict"})


class Operation(NamedTuple):
    """One call of a function on arrays; `written` is the argument that it writes into."""

    site: Site
    op: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = MappingProxyType({})
    written: int | str | None = None


class Recorder:
    """The nodes of one or more runs, the later of which may use arrays of the earlier."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._of: dict[int, Node] = {}
        #: Objects whose identity is in use.
        self._alive: list[Any] = []
        #: Arrays of NumPy that have a node, by the array that owns their memory.
        self._sharing: dict[int, list[np.ndarray]] = {}
        self._assignments: list[Assignment] = []
        self._branches: list[Branch] = []
        self._frame: Frame = Frame(type(None))
        self._rounds: tuple[Round, ...] = ()

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Program:
        """Call the function and return what it did; what it raises is passed on."""
        first = len(self._nodes), len(self._assignments), len(self._branches)
        function, args, kwargs = _plain(function, args, kwargs)
        frame = Frame(function)
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        self._frame, self._rounds = frame, ()
        arguments = {name: self._argument(value, name) for name, value in bound.arguments.items()}
        result = self._entered(frame, function, args, kwargs)
        lifted = self.lift(result)
        return Program(
            frame,
            tuple(self._nodes[first[0] :]),
            arguments,
            lifted,
            tuple(self._assignments[first[1] :]),
            tuple(self._branches[first[2] :]),
        )

    # Called by instrumented code

    def operate(self, site: Site, name: str, *operands: Any) -> Any:
        function = FUNCTIONS[name]
        if not any(map(self._is_value, operands)):
            return function(*operands)
        return self._apply(Operation(site, name, function, operands))

    def call(self, site: Site, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        owner = getattr(function, "__self__", None)
        if _computes(owner):
            return self.method(site, owner, function.__name__, *args, **kwargs)
        function, args, kwargs = _plain(function, args, kwargs)
        if isinstance(function, FunctionType) and not is_library(function):
            return self._followed(site, function, args, kwargs)
        own = getattr(type(function), "__call__", None)  # noqa: B004
        if isinstance(own, FunctionType) and not is_library(own):
            return self._followed(site, own, (function, *args), kwargs)
        if isinstance(function, type):
            return self._constructed(site, function, args, kwargs)
        return self._library(site, function, args, kwargs)

    def method(self, site: Site, owner: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(owner, ModuleType):
            return self.call(site, getattr(owner, name), *args, **kwargs)
        if not _computes(owner):
            return self.call(site, getattr(owner, name), *args, **kwargs)
        op = f"{library_function(owner)}.{name}" if isinstance(owner, np.ufunc) else name
        written = written_argument(name, owner, args, kwargs)
        operation = Operation(
            site, standard_name(op), Method(name), (owner, *args), kwargs, written
        )
        return self._apply(operation)

    def attribute(self, site: Site, owner: Any, name: str) -> Any:
        if is_array(owner) and name in _VIEWS:
            return self._apply(Operation(site, _VIEWS[name], Attribute(name), (owner,)))
        found = inspect.getattr_static(type(owner), name, None)
        if isinstance(found, property) and isinstance(found.fget, FunctionType):
            return self.call(site, found.fget, owner)
        return self._met(site, getattr(owner, name))

    def item(self, site: Site, owner: Any, index: Any) -> Any:
        if is_array(owner):
            return self._apply(Operation(site, "getitem", getitem, (owner, index)))
        return self._met(site, owner[index])

    def _met(self, site: Site, value: Any) -> Any:
        """A value out of an object; an array not seen before is an input, by the text there."""
        if is_array(value) and id(value) not in self._of:
            self._input(value, site.text, site)
        return value

    def slice(self, start: Any, stop: Any, step: Any) -> Any:
        return builtins.slice(start, stop, step)

    def store(self, site: Site, owner: Any, index: Any, value: Any) -> None:
        if not is_array(owner):
            owner[index] = value
            return
        operation = Operation(site, "store", store, (owner, index, value))
        self._write(operation, owner, partial(owner.__setitem__, index, value))

    def augment(self, site: Site, name: str, old: Any, value: Any) -> Any:
        function = IN_PLACE[name]
        if isinstance(old, np.ndarray) or hasattr(old, "grad_fn"):
            return self._apply(Operation(site, name, function, (old, value), written=0))
        if self._is_value(old) or self._is_value(value):
            return self._apply(Operation(site, name, function, (old, value)))
        return function(old, value)

    def loop(self, site: Site, iterable: Any, names: Any) -> Iterator[Any]:
        """The items, round by round; `names` take them, nested in tuples as the target is."""
        before = self._rounds
        try:
            for number, item in enumerate(self._items(site, iterable)):
                self._rounds = (*before, Round(site, number))
                yield self._item(site, item, names)
        finally:
            self._rounds = before

    def test(self, site: Site, value: Any) -> bool:
        taken = bool(value)
        node = self._of.get(id(value)) if is_array(value) else None
        self._branches.append(Branch(self._frame, site, taken, node))
        return taken

    def decided(self, site: Site, value: Any) -> Any:
        """A value whose truth decides what Python computes next, within an expression."""
        return value

    def compare(
        self, site: Site, names: tuple[str, ...], left: Any, *others: Callable[[], Any]
    ) -> Any:
        """A chain of comparisons: the last, or the first that does not hold."""
        found: Any = True
        for name, other in zip(names, others, strict=True):
            if not self.decided(site, found):
                break
            right = other()
            found, left = self.operate(site, name, left, right), right
        return found

    def contains(self, site: Site, item: Any, items: Any) -> bool:
        return item in items

    def named(self, site: Site, name: str, value: Any) -> Any:
        self.bind(site, (name,), (value,))
        return value

    def bind(self, site: Site, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
        for name, value in zip(names, values, strict=True):
            lifted = self.lift(value)
            self._assign(name, lifted, site)
            # A path such as cache.x_hat gives way to the name that the function has for it.
            if isinstance(lifted, Node):
                lifted.names.add(name)
                if not lifted.name.isidentifier():
                    lifted.name = name

    def _assign(self, name: str, value: Any, site: Site | None) -> None:
        made = len(self._nodes)
        entry = Assignment(self._frame, name, value, site, self._rounds, made)
        self._assignments.append(entry)

    # Values and nodes

    def lift(self, value: Any) -> Any:
        """The value with nodes in the place of arrays, also within tuples, lists and slices."""
        return mapped(self._node, value)

    def _node(self, value: Any) -> Any:
        if id(value) in self._of:
            return self._of[id(value)]
        return self._input(value, self._known_name(value), None) if is_array(value) else value

    def _is_value(self, value: Any) -> bool:
        return is_array(value) or id(value) in self._of

    def _argument(self, value: Any, name: str) -> Any:
        """The argument in terms of nodes; those that are new are named after it."""
        if is_array(value):
            return self._of.get(id(value)) or self._input(value, name, None)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = zip(value._fields, value, strict=True)
            return type(value)(*(self._argument(each, f"{name}.{field}") for field, each in fields))
        if isinstance(value, tuple | list):
            parts = [self._argument(each, f"{name}[{i}]") for i, each in enumerate(value)]
            return type(value)(parts)
        if type(value) is dict:
            return {key: self._argument(each, f"{name}[{key!r}]") for key, each in value.items()}
        return value

    def _known_name(self, value: Any) -> str:
        """The name of a global or of a closure's variable that the running function may see."""
        function = self._frame.function
        names: Mapping[str, Any] = getattr(function, "__globals__", {})
        if isinstance(function, FunctionType):
            names = {**names, **inspect.getclosurevars(function).nonlocals}
        return next((name for name, each in names.items() if each is value), "")

    def _input(self, value: Any, name: str, site: Site | None) -> Node:
        return self._new("input", None, (), {}, value, site, name)

    def _new(
        self,
        op: str,
        function: Callable[..., Any] | None,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        value: Any,
        site: Site | None,
        name: str = "",
    ) -> Node:
        rounds, number = self._rounds, len(self._nodes)
        node = Node(number, op, function, args, kwargs, value, self._frame, site, rounds, name)
        self._nodes.append(node)
        self._of[id(value)] = node
        self._alive.append(value)
        if isinstance(value, np.ndarray):
            self._sharing.setdefault(id(self._owner(value)), []).append(value)
        return node

    # Operations

    def _apply(self, operation: Operation) -> Any:
        """The value, with a node for it, or for each of the arrays in a tuple or list."""
        site, op, function, args, kwargs, written = operation
        if written is not None:
            array = kwargs[written] if isinstance(written, str) else args[written]
            pure = operation._replace(function=OnCopy(function, written))
            return self._write(pure, array, partial(function, *args, **kwargs))
        lifted = self.lift(args), self.lift(kwargs)
        value = self._kept(self._computed(function, args, kwargs), lifted)
        drawn = any(isinstance(each, np.random.Generator) for each in (*args, *kwargs.values()))
        made_by = None if drawn else function
        if isinstance(value, tuple | list) and any(map(is_array, value)):
            whole = self._new(op, made_by, *lifted, value, site)
            for i, each in enumerate(value):
                if is_array(each) and id(each) not in self._of:
                    self._new("element", element, (whole, i), {}, each, site)
        elif id(value) not in self._of and (is_array(value) or _is_number_of(value, lifted)):
            self._new(op, made_by, *lifted, value, site)
        return value

    def _computed(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """The result of an operation."""
        return function(*args, **kwargs)

    def _kept(self, value: Any, lifted: Any) -> Any:
        """The result of an operation, as an object whose identity a node can stand for."""
        return value

    def _library(
        self, site: Site, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        name = getattr(function, "__name__", "")
        is_of_python = bool(name) and vars(builtins).get(name) is function
        if is_of_python:
            if name in _TAKE_ALL:
                args = tuple(list(a) if isinstance(a, GeneratorType) else a for a in args)
            if name in _ITERATE:
                args = tuple(self._expanded(site, each) for each in args)
                return function(*args, **kwargs)
            if name == "sum" and not kwargs:
                return self._sum(site, *args)
            if name == "getattr":
                found = hasattr(*args[:2]) or len(args) == 2
                return self.attribute(site, *args[:2]) if found else args[2]
        elif is_library(function):
            args = tuple(list(a) if isinstance(a, GeneratorType) else a for a in args)
        op = library_function(function)
        written = written_argument(name, None, args, kwargs)
        return self._apply(Operation(site, op, function, args, kwargs, written))

    def _sum(self, site: Site, items: Iterable[Any], start: Any = 0) -> Any:
        total = start
        for each in self._items(site, items):
            total = self.operate(site, "add", total, each)
        return total

    def _constructed(
        self, site: Site, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        made_by = getattr(kind, "__init__", None)
        if comes_from_library(kind) or not isinstance(made_by, FunctionType):
            return self._library(site, kind, args, kwargs)
        makes_itself = getattr(kind, "__new__", None) is object.__new__ and type(kind) is type
        if not makes_itself:
            return kind(*args, **kwargs)
        made: Any = object.__new__(kind)
        self._followed(site, made_by, (made, *args), kwargs)
        return made

    def _followed(
        self, site: Site, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        frame = Frame(function, self._frame, site)
        return self._entered(frame, function, args, kwargs)

    def _entered(
        self, frame: Frame, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The result of a call, its source followed where that can be read."""
        instrumented = follows(function, self)
        if instrumented is None:
            assert frame.site is not None or frame.caller is None
            site = frame.site or Site(0, 0, 0, 0, frame.name)
            return self._apply(Operation(site, library_function(function), function, args, kwargs))
        before, self._frame = self._frame, frame
        try:
            if frame.caller is not None:
                bound = inspect.signature(function).bind(*args, **kwargs)
                bound.apply_defaults()
                self.bind(frame.site, tuple(bound.arguments), tuple(bound.arguments.values()))  # type: ignore[arg-type]
            return instrumented(*args, **kwargs)
        finally:
            self._frame = before

    # Items

    def _item(self, site: Site, item: Any, names: Any) -> Any:
        """The item of a round."""
        return item

    def _items(self, site: Site, iterable: Any) -> Iterable[Any]:
        """The items; those of an array one by one, with a node for each."""
        if is_array(iterable):
            of_items = site._replace(text="")  # no text of the source stands for one of them
            return (self.item(of_items, iterable, i) for i in range(len(iterable)))
        return iterable

    def _expanded(self, site: Site, value: Any) -> Any:
        return list(self._items(site, value)) if is_array(value) and np.ndim(value) else value

    # Writing

    def _write(self, operation: Operation, array: Any, do: Callable[[], Any]) -> Any:
        """Write into an array: from then on it and all views of its memory have new nodes."""
        site, op, pure, args, kwargs, _ = operation
        lifted = self.lift(args), self.lift(kwargs)
        written = self._node(array)
        sharing = list(self._sharing_with(array))
        before = [self._of[id(each)] for each, _, _ in sharing]
        for node in (written, *before):
            node.value = copied(node.value)
        result = do()
        new = self._new(op, pure, *lifted, array, site)
        self._keep_name(written, new)
        for old, (view, at, by) in zip(before, sharing, strict=True):
            changed = self._new("replaced", replaced, (old, new, at, by), {}, view, site)
            self._keep_name(old, changed)
        return result

    def _keep_name(self, old: Node, new: Node) -> None:
        """Give the old node's name to the new one."""
        if old.name:
            new.name = old.name
            self._assign(old.name, new, new.site)

    def _sharing_with(self, array: Any) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Other arrays with nodes, and which of their elements are which elements of this one."""
        if not isinstance(array, np.ndarray):
            return
        family = {id(each): each for each in self._sharing.get(id(self._owner(array)), [])}
        own = self._memory(array)
        for each in family.values():
            other = self._memory(each)
            if each is not array and np.may_share_memory(other, own):
                at, by = _shared_positions(other, own)
                if at.size:
                    yield each, at, by

    def _owner(self, array: Any) -> Any:
        """The array that owns the memory."""
        while isinstance(array.base, np.ndarray):
            array = array.base
        return array

    def _memory(self, array: Any) -> np.ndarray:
        """The array of NumPy that an array is."""
        return np.asarray(array)


def _plain(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function and its arguments without the partial, method or dispatch around it."""
    while isinstance(function, partial):
        args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
        function = function.func
    if isinstance(function, MethodType):
        args, function = (function.__self__, *args), function.__func__
    return getattr(function, "reference", function), args, kwargs


def _computes(owner: Any) -> bool:
    """True for an object whose methods are operations on arrays."""
    return is_array(owner) or isinstance(owner, np.ufunc | np.random.Generator)


def _is_number_of(value: Any, lifted: Any) -> bool:
    """True for a number of Python that was made of nodes."""
    is_number = isinstance(value, int | float | complex) and type(value) not in (int, bool)
    return is_number and next(leaves(lifted), None) is not None


def _shared_positions(view: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Flat positions in `view`, and the positions of the same memory in `other`."""
    first, second = _addresses(view), _addresses(other)
    _, at, by = np.intersect1d(first, second, return_indices=True)
    return at, by


def _addresses(array: np.ndarray) -> np.ndarray:
    found = np.array(array.__array_interface__["data"][0])
    for size, stride in zip(array.shape, array.strides, strict=True):
        found = found[..., None] + np.arange(size) * stride
    return found.reshape(-1)
