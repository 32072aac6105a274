"""Tracers: handles on nodes that look like arrays and numbers to the function that is traced."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from handgrad.program.indexing import template
from handgrad.program.integers import WholeNumber
from handgrad.program.node import Node, as_node, build, settle, world
from handgrad.program.operators import Operators
from handgrad.program.primitives.kinds import cast
from handgrad.program.primitives.repeating import elements
from handgrad.program.primitives.table import CHANGING, FUNCTIONS, signature_of
from handgrad.program.rounds import Iterable, Pile, entered, guard
from handgrad.program.sizes import ONE, Size
from handgrad.program.views import Step, read, steps, written

#: Functions that take tracers as they are: those that change arrays, and those that ask for facts.
SPECIAL: dict[Any, Callable[..., Any]] = {}
#: For a library whose own code meets tracers: what does its functions in their place.
OVERRIDES: dict[str, Callable[..., Any]] = {}
#: Functions whose result shares the memory of their first operand, where NumPy can.
VIEWS = {
    *(np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.squeeze),
    *(np.expand_dims, np.flip),
}
#: Arguments that say which axes, and not how many elements.
_STRUCTURE = {"axis", "axis1", "axis2", "axes", "ord", "ndmin", "source", "destination"}


class TracedInt(WholeNumber):
    """An integer of a trace: a length, a setting, a loop's counter, or made of them."""

    __slots__ = ()

    def scalar(self) -> Tracer:
        return Tracer(as_node(self.size))


class _ByLibrary:
    """An attribute of NumPy's arrays that those of another library have otherwise."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, tracer: Any, owner: type) -> Any:
        other = world().attributes.get(self._name)
        return self._own.__get__(tracer, owner) if other is None else other(tracer)


class Tracer(Operators):
    """A handle on a node; a change in place gives the handle a new node, and views see it."""

    __array_priority__ = 1000.0

    def __init__(self, node: Node, base: Tracer | None = None) -> None:
        self._node = node
        self._base = base
        self._seen = None if base is None else base.node
        self._steps: list[Step] | None = None if base is None else steps(node, base.node)

    @property
    def node(self) -> Node:
        """The node; of a view, read again where its array has changed since."""
        base = self._base
        if base is not None and base.node is not self._seen:
            if self._steps is None:
                world().refuse("a view is read whose array has changed; make it anew")
            self._seen = base.node
            self._node = read(self._seen, self._steps)
        if world().events is not None:
            settle(self._node)
        return self._node

    @property
    def held(self) -> Node:
        """The node as it was when it was last asked for."""
        return self._node

    def assign(self, value: Any) -> None:
        """Changes the array in place, for all who hold it."""
        new = unwrap(value) if isinstance(value, Tracer | WholeNumber) else as_node(value)
        old = self.node
        if new.shape != old.shape:
            new = build("broadcast_to", new, shape=old.shape)
        if new.kind != old.kind:
            if "bifc".index(new.kind) > "bifc".index(old.kind):
                world().refuse("an array of integers or booleans can't take these values in place")
            new = build("astype", new, kind=old.kind)
        if self._base is None:
            self._node = new
            return
        if self._steps is None:
            world().refuse("a view is changed in place; write to the array itself")
        self._base.assign(Tracer(written(self._base.node, self._steps, new)))
        self._node, self._seen = new, self._base.node

    def become(self, other: Tracer) -> None:
        """Takes the place and the axes of another view of the same array."""
        self.__init__(other.held, self._base if other._base is self else other._base)  # type: ignore[misc]

    def is_fixed(self) -> bool:
        return "at" in world().attributes or not isinstance(self._node.value, np.ndarray)

    def assign_at(self, op: str, key: Any, value: Any) -> None:
        """Changes some elements: `op` is store or add_at."""
        node = self.node
        arrays, index = template(node, unwrap(key))
        new = as_node(unwrap(value))
        if "bifc".index(new.kind) > "bifc".index(node.kind):
            world().refuse(f"values of kind {new.kind} are stored in an array of {node.kind}")
        self.assign(Tracer(build(op, node, new, *arrays, index=index)))

    @property
    def __class__(self) -> type:
        return type(self._node.value)

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("a tracer stays one")

    @property
    def ndim(self) -> int:
        return self._node.ndim

    def _count(self) -> Any:
        total = ONE
        for s in self.node.shape:
            total = total * s
        return wrap(total)

    shape = _ByLibrary(property(lambda self: tuple(map(wrap, self.node.shape))))
    size = _ByLibrary(property(_count))
    dtype = _ByLibrary(property(lambda self: np.asarray(self._node.value).dtype))

    @property
    def strides(self) -> tuple[Any, ...]:
        """The bytes between neighbours, which tell `as_strided` its axes and steps."""
        if not np.asarray(self.node.value).flags.c_contiguous:
            world().refuse("the strides of an array in another order than that of C")
        return tuple(wrap(each * 8) for each in elements(self.node.shape))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"traced {self._node!r}"

    def apply(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return call(function, *args, **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if method == "__call__":
            return call(ufunc, *args, **kwargs)
        return call_method(ufunc, method, *args, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call(function, *args, **kwargs)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return OVERRIDES["torch"](function, args, kwargs or {})

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        world().refuse("a library asks for the numbers of a traced array")

    def __getitem__(self, key: Any) -> Tracer:
        node = self.node
        arrays, index = template(node, unwrap(key))
        if arrays or None not in index:
            out = build("getitem", node, *arrays, index=index)
        else:  # new axes are a reshape of what the rest of the index selects
            out = build("getitem", node, index=tuple(i for i in index if i is not None))
            sizes = iter(out.shape)
            places = [i for i in index if i is None or isinstance(i, slice)]
            shape = tuple(ONE if i is None else next(sizes) for i in places)
            out = build("reshape", out, shape=shape)
        return Tracer(out) if arrays else viewed(Tracer(out), self)

    def __setitem__(self, key: Any, value: Any) -> None:
        # `x[i] += v` has changed the view x[i] when Python stores it where it is already.
        done = type(value) is Tracer and value._base is self and value._seen is self.node
        if done and value._steps == self[key]._steps:
            return
        if type(key) is Tracer and key.node.kind == "b" and not np.ndim(as_node_value(value)):
            self.assign(self.apply(np.where, _lined_up(key, self), value, self))
            return
        self.assign_at("store", key, value)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return entered(self.node.shape[0], self.element, sys._getframe(1))

    def element(self, counter: Size) -> Tracer:
        """The element of a loop's round."""
        return self[TracedInt(world().length(counter), counter)]

    def __bool__(self) -> bool:
        outcome = bool(self.node.value)
        guard("true", self.node, None, outcome)
        return outcome

    def __index__(self) -> int:
        """A traced whole number where Python needs one: the emitted function checks it."""
        if self.node.kind != "i" or self.ndim:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        number = int(self.node.value)
        guard("true", self.apply(np.equal, self, number).node, None, True)
        return number

    __int__ = __index__

    def __float__(self) -> float:
        world().refuse("a library asks for the number of a traced value, by float()")

    def __complex__(self) -> complex:
        world().refuse("complex() of a traced value")

    def __round__(self, digits: int | None = None) -> Any:
        if digits is not None:
            return self.apply(np.round, self, digits)
        number = round(float(self.node.value))
        guard("true", (abs(self - number) <= 0.5).node, None, True)
        return number

    def __copy__(self) -> Tracer:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self.copy()

    def astype(self, kind: Any, copy: bool = True, **_: Any) -> Tracer:
        return Tracer(cast(self.node, kind))

    def copy(self, order: str = "C") -> Tracer:
        return Tracer(self.node)

    @_ByLibrary
    def view(self, *kind: Any) -> Tracer:
        if kind and np.dtype(kind[0]) != self.dtype:
            world().refuse("view() as another type")
        return viewed(Tracer(self.node), self)

    def item(self, *place: Any) -> Tracer:
        if not place:
            return self.reshape(()) if self.ndim else self
        if len(place) == 1 and not isinstance(place[0], tuple):
            return self.flat[place[0]]
        return self[place[0] if len(place) == 1 else place]

    transpose, flatten, sort, reshape = map(
        _ByLibrary, (Operators.transpose, Operators.flatten, Operators.sort, Operators.reshape)
    )

    def __getattr__(self, name: str) -> Any:
        if name in (other := world().attributes):
            return other[name](self)
        function = name if name in FUNCTIONS else getattr(np, name, None)
        known = function is name or (callable(function) and not isinstance(function, type))
        if name.startswith("_") or not known:
            raise AttributeError(f"a traced array has no attribute {name!r}")
        return lambda *args, **kwargs: call(function, self, *args, **kwargs)


def as_node_value(x: Any) -> Any:
    """The value that a thing has on the example."""
    return x.held.value if type(x) is Tracer else x.value if type(x) is TracedInt else x


def _lined_up(mask: Tracer, array: Tracer) -> Tracer:
    """A mask of the first axes of an array, with axes of one for the others."""
    return mask[(..., *(None,) * (array.ndim - mask.ndim))]


def viewed(result: Tracer, base: Any) -> Tracer:
    """A result that shares memory with a tracer, as a view of it."""
    if type(base) is not Tracer or not isinstance(result.held.value, np.ndarray):
        return result
    if not np.may_share_memory(result.held.value, base.held.value):
        return result
    return Tracer(result.held, base)


def unwrap(x: Any) -> Any:
    """Nodes and sizes in the place of tracers and traced integers."""
    kind = type(x)
    if kind is Tracer:
        return x.node
    if kind is TracedInt:
        return x.size
    if issubclass(kind, tuple) and hasattr(x, "_make"):
        return x._make(map(unwrap, x))
    if kind is Pile:
        kind = list
    if issubclass(kind, tuple | list):
        # A nest of lists is an array of the piles that its lists are.
        whole = (v.array if type(v) is Pile and v.array is not None else v for v in x)
        return kind(map(unwrap, whole))
    if kind is slice:
        return slice(unwrap(x.start), unwrap(x.stop), unwrap(x.step))
    if kind is dict:
        return {k: unwrap(v) for k, v in x.items()}
    if kind is Iterable:
        if x.line is None:
            return [unwrap(v) for v in list(x)]
        start, step = x.line
        return call(np.arange, *map(wrap, (start, start + step * x.count, step))).node
    return list(x) if kind is range else x


def wrap(x: Any) -> Any:
    """Tracers and traced integers in the place of nodes and sizes; plain numbers stay."""
    if isinstance(x, Node):
        return Tracer(x)
    if isinstance(x, Size):
        return TracedInt(world().length(x), x)
    if isinstance(x, tuple) and hasattr(x, "_make"):
        return x._make(map(wrap, x))
    if isinstance(x, tuple | list):
        return type(x)(map(wrap, x))
    return x


def traced(x: Any) -> bool:
    """True where a tracer or a traced integer is in a nest of tuples, lists and dicts."""
    kind = type(x)
    if issubclass(kind, tuple | list):
        return any(map(traced, x))
    if kind is dict:
        return any(map(traced, x.values()))
    if kind is slice:
        return traced((x.start, x.stop, x.step))
    return kind in (Tracer, TracedInt, Iterable)


def arrays_in(x: Any) -> bool:
    """True where a tracer is in a nest."""
    kind = type(x)
    if issubclass(kind, tuple | list):
        return any(map(arrays_in, x))
    return kind is Tracer or (kind is dict and any(map(arrays_in, x.values())))


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of NumPy, SciPy or math on traced things."""
    w = world()
    if function in SPECIAL:
        result = SPECIAL[function](*args, **kwargs)
        if result is not NotImplemented:
            return result
    known = signature_of(function)
    own, *_ = function if isinstance(function, tuple) else (function,)
    name = getattr(own, "__name__", str(own))
    if known is None:
        if arrays_in(args) or arrays_in(kwargs):
            w.refuse(f"no derivative of {name} is known")
        return function(*map(_frozen, args), **{k: _frozen(v) for k, v in kwargs.items()})
    out = kwargs.pop("out", None)
    if isinstance(function, np.ufunc) and len(args) > function.nin:
        args, out = args[: function.nin], args[function.nin :]
    target = out[0] if isinstance(out, tuple) else out
    if function in CHANGING:
        target = args[0] if args else kwargs[next(iter(inspect.signature(known).parameters))]
    mask = kwargs.pop("where", True) if isinstance(function, np.ufunc) else True
    kwargs.pop("casting", None)
    for structural in _STRUCTURE & kwargs.keys():
        kwargs[structural] = _frozen(kwargs[structural])
    try:
        try:
            result = wrap(known(*map(unwrap, args), **unwrap(kwargs)))
        except TypeError:  # an axis by its place, perhaps, which has to be a number
            args, kwargs = _frozen(args), {k: _frozen(v) for k, v in kwargs.items()}
            result = wrap(known(*map(unwrap, args), **unwrap(kwargs)))
    except (NotImplementedError, TypeError) as e:
        w.refuse(f"{name} is not known with these arguments: {e}")
    if function in VIEWS:
        result = viewed(result, args[0])
    if mask is not True:
        if target is None:
            w.refuse(f"{name} with where= and without out= leaves elements without a value")
        result = call(np.where, mask, result, target)
    if target is None:
        return result
    if type(target) is not Tracer:
        w.refuse(f"{name} writes into an array from outside the function")
    target.assign(result)
    return None if function in CHANGING else target


def call_method(ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """A method of a ufunc."""
    if (ufunc, method) in FUNCTIONS:
        return call((ufunc, method), *args, **kwargs)
    if method not in SPECIAL:
        world().refuse(f"np.{ufunc.__name__}.{method} is not known")
    return SPECIAL[method](ufunc, *args, **kwargs)


def _frozen(x: Any) -> Any:
    """Traced integers as numbers, which the emitted function then holds to."""
    if type(x) is TracedInt:
        return int(x)
    if isinstance(x, tuple | list):
        return (tuple if isinstance(x, tuple) else list)(map(_frozen, x))
    return x
