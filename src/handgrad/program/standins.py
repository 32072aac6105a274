"""Stand-ins for Python's builtins and for the modules that a traced function sees."""

from __future__ import annotations

import builtins
import functools
import itertools
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from handgrad.program.distributions import is_distribution, shown_distribution
from handgrad.program.integers import is_whole, size_of
from handgrad.program.node import Node, world
from handgrad.program.primitives.table import CREATION
from handgrad.program.rounds import Iterable, Pile, guard, runs
from handgrad.program.sizes import ONE, Size
from handgrad.program.special import Vectorized, size_quotient, traced_array
from handgrad.program.tracer import SPECIAL, TracedInt, Tracer, call, call_method, traced, wrap

ARRAY_MODULES = ("numpy", "scipy", "math")
#: Stand-ins for the modules of other packages, by the package.
MODULES: dict[str, Callable[[types.ModuleType], Any]] = {}


def held_in(x: Any) -> Node | None:
    """The first node in an element of a list: it tells the round that made the element."""
    if type(x) is Tracer:
        return x.held
    if isinstance(x, tuple | list):
        return next((n for v in x if (n := held_in(v)) is not None), None)
    return None


def iterable(x: Any) -> Iterable | None:
    """What a loop can go over round by round; a list that the rounds of a loop filled is such."""
    if type(x) is Iterable:
        return x
    if type(x) is Tracer and x.ndim:
        return Iterable(x.node.shape[0], x.element)
    if type(x) in (list, Pile) and len(x) > 1:
        nodes = [n for v in x if (n := held_in(v)) is not None]
        if len(nodes) == len(x):
            (_, end, length), *_ = runs(nodes)
            if end == len(x) and length is not None:
                return Iterable(length, lambda k: x[world().length(k)])
    return None


def each(x: Any) -> Any:
    """What a `for` in the source of the function goes over."""
    known = iterable(x) if type(x) in (list, Pile) else None
    return x if known is None else known


def made(x: list[Any]) -> list[Any]:
    """A list that a comprehension has made; one of a whole loop knows its pile."""
    if len(x) < 2 or any(type(v) is not Tracer and type(v) is not Pile for v in x):
        return x
    arrays = [v if type(v) is Tracer else v.array for v in x]
    alike = len({tuple(map(str, a.node.shape)) for a in arrays}) == 1
    if not alike or iterable(arrays) is None:
        return x
    return Pile(x, call(np.stack, arrays))


def _range(*args: Any) -> Any:
    start, stop, step = Size.of(0), ONE, ONE
    if len(args) == 1:
        stop = _whole_size(args[0])
    else:
        start, stop = _whole_size(args[0]), _whole_size(args[1])
        step = _whole_size(args[2]) if len(args) > 2 else ONE
    one = step.constant
    if one == 0:
        raise ValueError("range() arg 3 must not be zero")
    if one is not None and one < 0:
        count = -((stop - start) // -one) if one != -1 else start - stop
        count = (start - stop - one - 1) // -one
    else:
        count = (stop - start + step - 1) // step
    if world().length(count) < 0:
        guard("__lt__", count, Size.of(0), True)
        count = Size.of(0)
    if not any(map(traced, args)) and (world().spells_out or world().length(count) < 2):
        return builtins.range(*args)
    return Iterable(count, lambda k: wrap(start + step * k), (start, step))


def _whole_size(x: Any) -> Size:
    return size_of(x) if is_whole(x) else Size.of(operator.index(x))


def _zip(*parts: Any, strict: bool = False) -> Any:
    known = [iterable(p) for p in parts]
    sure = [k for k in known if k is not None]
    if len(sure) < len(parts) or not sure:
        elements = (p if k is None else list(k) for k, p in zip(known, parts, strict=True))
        return builtins.zip(*elements, strict=strict)
    shortest = min(sure, key=lambda k: world().length(k.count))
    for k in sure:
        if k.count != shortest.count:
            longer = world().length(k.count) > world().length(shortest.count)
            guard("__gt__" if longer else "__eq__", k.count, shortest.count, True)
    return Iterable(shortest.count, lambda k: tuple(i.element(k) for i in sure))


def _enumerate(x: Any, start: Any = 0) -> Any:
    known = iterable(x)
    if known is None:
        return builtins.enumerate(x, start)
    return Iterable(known.count, lambda k: (wrap(k + size_of(start)), known.element(k)))


def _reversed(x: Any) -> Any:
    known = iterable(x)
    if known is None:
        return builtins.reversed(x)
    line = known.line
    if line is not None:
        line = line[0] + line[1] * (known.count - 1), -line[1]
    return Iterable(known.count, lambda k: known.element(known.count - 1 - k), line)


def _iter(x: Any, *sentinel: Any) -> Any:
    """Elements one at a time, without rounds, since nobody knows who asks for the next."""
    known = None if sentinel else iterable(x)
    if known is None:
        return builtins.iter(x, *sentinel)
    return builtins.iter(list(known))


def _map(f: Callable[..., Any], *parts: Any) -> Iterator[Any]:
    return (f(*args) for args in _zip(*parts))


def _len(x: Any) -> Any:
    if type(x) is Tracer and x.ndim:
        return x.shape[0]
    if type(x) is Iterable:
        return wrap(x.count)
    known = iterable(x) if type(x) in (list, Pile) else None
    return builtins.len(x) if known is None else wrap(known.count)


def _extreme(python: Any, ufunc: Any, whole: Any) -> Callable[..., Any]:
    def f(*args: Any, key: Any = None, **default: Any) -> Any:
        single = len(args) == 1
        if single and type(args[0]) is Tracer and args[0].ndim == 1 and key is None:
            return call(whole, args[0])
        items = list(args[0]) if single else list(args)
        if key is None and any(type(i) is Tracer for i in items):
            return functools.reduce(lambda a, b: call(ufunc, a, b), items)
        return python(items, key=key, **default)

    return f


def _sum(x: Any, /, start: Any = 0) -> Any:
    return call(np.sum, x, axis=0) + start if type(x) is Tracer else builtins.sum(x, start)


def _abs(x: Any) -> Any:
    return call(np.absolute, x) if type(x) is Tracer else builtins.abs(x)


def _pow(x: Any, y: Any, *modulus: Any) -> Any:
    return x**y if traced((x, y)) and not modulus else builtins.pow(x, y, *modulus)


def _import(name: str, *args: Any, **kwargs: Any) -> Any:
    return shown_module(builtins.__import__(name, *args, **kwargs))


class _Type(type):
    """The class of stand-ins for int, float and NumPy's types, which are equal to them."""

    own: type

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.own)

    def __eq__(cls, other: object) -> bool:
        return other is cls.own or type.__eq__(cls, other) is True

    def __hash__(cls) -> int:
        return hash(cls.own)


class _Float(metaclass=_Type):
    own = float
    dtype = np.dtype(float)

    def __new__(cls, x: Any = 0.0) -> Any:
        if type(x) is TracedInt:
            return 1.0 * x.scalar()
        if type(x) is not Tracer:
            return float(x)
        return x.item() if x.node.kind == "f" else x.item().astype(float)


class _Int(metaclass=_Type):
    own = int
    dtype = np.dtype(int)

    def __new__(cls, x: Any = 0, *base: Any) -> Any:
        if type(x) is TracedInt:
            return x
        if type(x) is not Tracer:
            return int(x, *base)
        whole = size_quotient(x)
        if whole is not None:
            return whole
        return x if x.node.kind == "i" else int(x.item().astype(int))


def _scalar_type(own: Any) -> Any:
    """np.float64 and the like: a type, an element type, and a function."""

    class Scalar(metaclass=_Type):
        dtype = np.dtype(own)

        def __new__(cls, x: Any = 0) -> Any:
            return traced_array(x).astype(own) if traced(x) else own(x)

    Scalar.own = own
    Scalar.__name__ = own.__name__
    return Scalar


_Float.__name__, _Int.__name__ = "float", "int"

_NONE: Any = object()


def _accumulate(x: Any, f: Callable[..., Any] = operator.add, *, initial: Any = _NONE) -> Any:
    """The results so far, one a round, after the start where one is given."""
    total = initial
    if total is not _NONE:
        yield total
    for value in each(x):
        total = value if total is _NONE else f(total, value)
        yield total


def _reduce(f: Callable[..., Any], x: Any, initial: Any = _NONE) -> Any:
    total = initial
    for total in _accumulate(x, f, initial=initial):  # noqa: B007 (the last is the result)
        pass
    return total


def _product(*parts: Any, repeat: int = 1) -> Iterator[tuple[Any, ...]]:
    parts *= repeat
    if not parts:
        yield ()
        return
    for value in each(parts[0]):
        for rest in _product(*parts[1:]):
            yield (value, *rest)


def _combinations(x: Any, r: int) -> Iterator[tuple[Any, ...]]:
    known = iterable(x)
    if known is None or r != 2:
        yield from itertools.combinations(x, r)
        return
    for first in Iterable(known.count - 1, lambda k: k):
        after = functools.partial(operator.add, first + 1)
        for later in Iterable(known.count - 1 - first, after):
            yield known.element(first), known.element(later)


def _pairwise(x: Any) -> Any:
    known = iterable(x)
    if known is None:
        return itertools.pairwise(x)
    return Iterable(known.count - 1, lambda k: (known.element(k), known.element(k + 1)))


#: Functions of Python's own modules that go over arrays, by the functions that do it in rounds.
ROUNDS: dict[Any, Any] = {
    functools.reduce: _reduce,
    itertools.accumulate: _accumulate,
    itertools.product: _product,
    itertools.pairwise: _pairwise,
    itertools.combinations: _combinations,
}

_SCALARS: dict[Any, Any] = {
    t: _scalar_type(t)
    for t in (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.bool_)
}

BUILTINS: dict[str, Any] = {
    "range": _range,
    "zip": _zip,
    "enumerate": _enumerate,
    "reversed": _reversed,
    "iter": _iter,
    "map": _map,
    "len": _len,
    "min": _extreme(min, np.minimum, np.min),
    "max": _extreme(max, np.maximum, np.max),
    "sum": _sum,
    "abs": _abs,
    "pow": _pow,
    "float": _Float,
    "int": _Int,
    "__import__": _import,
}


class Indexer:
    """np.r_, np.c_, np.mgrid or np.ogrid as the traced function sees it."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getitem__(self, key: Any) -> Any:
        return call(self._own, key) if traced(key) else self._own[key]


class StandIn:
    """A function of a module as the traced function sees it; a ufunc has methods too."""

    def __init__(self, own: Any, twin: Any) -> None:
        self._own, self._twin = own, twin
        self.__name__ = getattr(own, "__name__", "function")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._twin in CREATION or traced(args) or traced(kwargs):
            return call(self._twin, *args, **kwargs)
        return self._own(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._own, name)
        if not isinstance(self._own, np.ufunc) or not callable(own):
            return own
        return lambda *args, **kwargs: (
            call_method(self._own, name, *args, **kwargs) if traced(args) else own(*args, **kwargs)
        )

    def __eq__(self, other: object) -> bool:
        return (other._own if isinstance(other, StandIn) else other) is self._own

    def __hash__(self) -> int:
        return hash(self._own)


class PythonModule:
    """functools or itertools as the traced function sees it."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        return ROUNDS.get(value, value) if callable(value) else value


class Module:
    """A module of arrays or numbers as the traced function sees it."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, types.ModuleType):
            return shown_module(value)
        if name in ("r_", "c_", "mgrid", "ogrid"):
            return Indexer(value)
        if value is np.vectorize:
            return Vectorized
        if isinstance(value, type) and issubclass(value, np.generic) and value in _SCALARS:
            return _SCALARS[value]
        return shown_function(value) if is_function(value) else value


def is_function(x: Any) -> bool:
    """True for a function of an array library, or of math, and for a distribution."""
    if isinstance(x, np.ufunc) or is_distribution(x):
        return True
    home = (getattr(x, "__module__", None) or "").split(".")[0]
    return callable(x) and not isinstance(x, type) and home in ARRAY_MODULES


def shown_function(x: Any) -> Any:
    if is_distribution(x):
        return shown_distribution(x)
    twin = x
    if getattr(x, "__module__", "") == "math" and x not in SPECIAL:
        twin = getattr(np, _MATH.get(x.__name__, x.__name__), None) or x
    return StandIn(x, twin)


_MATH = {"pow": "power", "acos": "arccos", "asin": "arcsin", "atan": "arctan", "atan2": "arctan2"}


def shown_module(module: types.ModuleType) -> Any:
    """An array library's module by its stand-in, others as they are."""
    if module in (functools, itertools):
        return PythonModule(module)
    home = module.__name__.split(".")[0]
    if home in MODULES:
        return MODULES[home](module)
    return Module(module) if home in ARRAY_MODULES else module
