"""One trace: a function is run once on tracers, and what it does becomes nodes and marks of rounds.

Nothing is patched: a copy of the function runs whose globals show tracing stand-ins for numpy, math and a few builtins."""

from __future__ import annotations

import builtins
import math
import operator
import sys
import types

import numpy as np

from handgrad.program.node import Node, Refused, as_node, build, world
from handgrad.program.primitives.table import CHANGING, CREATION, FUNCTIONS
from handgrad.program.sizes import ONE, Size


class TracedInt:
    """An integer that remembers its expression. No subclass of int: 0.5 * n would never ask it."""

    def __init__(self, value, size):
        self.value, self.size = int(value), size

    def __index__(self):
        return self.value

    __int__ = __index__

    def __repr__(self):
        return f"{self.size} = {self.value}"

    def __hash__(self):
        return hash(self.value)

    def __bool__(self):
        return self != 0

    def __neg__(self):
        return TracedInt(-self.value, -self.size)


def _whole(x):
    return (isinstance(x, (int, np.integer)) and not isinstance(x, bool)) or isinstance(
        x, TracedInt
    )


def _integer(op, reflected):
    sign = getattr(operator, op)

    def method(self, other):
        if not _whole(other):
            return (
                NotImplemented
                if isinstance(other, Tracer)
                else getattr(Tracer(as_node(self.size)), f"__{'r' if reflected else ''}{op}__")(
                    other
                )
            )
        size = other.size if isinstance(other, TracedInt) else Size.of(int(other))
        left, right = (size, self.size) if reflected else (self.size, size)
        values = (int(other), self.value) if reflected else (self.value, int(other))
        return TracedInt(sign(*values), sign(left, right))

    return method


def _scalar(op):
    return lambda self, other: getattr(Tracer(as_node(self.size)), op)(unwrapped(other))


def unwrapped(x):
    return Tracer(as_node(x.size)) if isinstance(x, TracedInt) else x


for op in ["add", "sub", "mul", "floordiv", "mod"]:
    setattr(TracedInt, f"__{op}__", _integer(op, False))
    setattr(TracedInt, f"__r{op}__", _integer(op, True))
for op in ["truediv", "rtruediv", "pow", "rpow"]:
    setattr(TracedInt, f"__{op}__", _scalar(f"__{op}__"))


def _compared(op):
    sign = getattr(operator, op)

    def method(self, other):
        if not _whole(other):
            return sign(self.value, other) if isinstance(other, (int, float)) else NotImplemented
        out = sign(self.value, int(other))
        right = other.size if isinstance(other, TracedInt) else Size.of(int(other))
        if (self.size - right).constant is None:
            world().guards.append((f"__{op}__", self.size, right, out))
        return out

    return method


for op in ["eq", "ne", "lt", "le", "gt", "ge"]:
    setattr(TracedInt, f"__{op}__", _compared(op))


def collected(like, items):
    """A tuple, named or not, or a list of other items."""
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def unwrap(x):
    if isinstance(x, Tracer):
        return x.node
    if isinstance(x, TracedInt):
        return x.size
    if isinstance(x, (tuple, list)):
        return collected(x, map(unwrap, x))
    if isinstance(x, slice):
        return slice(unwrap(x.start), unwrap(x.stop), unwrap(x.step))
    if isinstance(x, dict):
        return {k: unwrap(v) for k, v in x.items()}
    return x


def wrap(x):
    if isinstance(x, Node):
        return Tracer(x)
    if isinstance(x, Size):
        return TracedInt(world().length(x), x)
    if isinstance(x, (tuple, list)):
        return collected(x, map(wrap, x))
    return x


def traced(x) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(traced, x))
    if isinstance(x, dict):
        return any(map(traced, x.values()))
    return isinstance(x, (Tracer, TracedInt))


class Tracer:
    """A handle on a node; a change in place gives the handle a new node."""

    __array_priority__ = 1000.0

    def __init__(self, node, view_of=None):
        self.node, self.view_of, self.owed = node, view_of, None

    shape = property(lambda self: wrap(self.node.shape))
    ndim = property(lambda self: self.node.ndim)
    dtype = property(lambda self: np.asarray(self.node.value).dtype)
    size = property(lambda self: wrap(_count(self.node.shape)))
    T = property(lambda self: call(np.transpose, self))
    mT = property(lambda self: call("mT", self))
    real = property(lambda self: call(np.real, self))
    imag = property(lambda self: call(np.imag, self))

    def __len__(self):
        return int(self.shape[0])

    def __repr__(self):
        return f"traced {self.node!r}"

    def __array_ufunc__(self, ufunc, method, *args, out=None, **kwargs):
        if method == "__call__":
            result = call(ufunc, *args, **{k: v for k, v in kwargs.items() if k != "casting"})
            if out is None:
                return result
            out[0].node = result.node
            return out[0]
        if (ufunc, method) in FUNCTIONS:
            return call((ufunc, method), *args, **kwargs)
        if method == "outer":
            return call(
                ufunc,
                args[0][
                    (...,)
                    + (None,)
                    * np.ndim(args[1].node.value if isinstance(args[1], Tracer) else args[1])
                ],
                args[1],
            )
        if method == "at" and ufunc is np.add:
            self_ = args[0]
            self_._change("add_at", args[1], args[2])
            return None
        raise Refused(f"line {world().line}: np.{ufunc.__name__}.{method} is not known")

    def __array_function__(self, function, types, args, kwargs):
        return call(function, *args, **kwargs)

    def __getitem__(self, key):
        node, arrays, index = _index(self.node, key)
        if (
            not arrays and None in index
        ):  # new axes are a reshape of what the rest of the index selects
            out = build("getitem", node, index=tuple(i for i in index if i is not None))
            sizes = iter(out.shape)
            out = build(
                "reshape",
                out,
                shape=tuple(
                    ONE if i is None else next(sizes)
                    for i in index
                    if i is None or isinstance(i, slice)
                ),
            )
            return Tracer(out, self)
        out = build("getitem", node, *arrays, index=index)
        return Tracer(out, None if arrays else self)

    def __setitem__(self, key, value):
        if isinstance(value, Tracer) and value.owed is self:
            value.owed = None
            world().owed.discard(value)
        self._change("store", key, value)

    def _change(self, op, key, value):
        if self.view_of is not None:
            raise Refused(
                f"line {world().line}: a view is changed in place; write to the array itself"
            )
        node, arrays, index = _index(self.node, key)
        name = self.node.name
        self.node = build(op, node, unwrap(value), *arrays, index=index)
        self.node.name = name

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        x = self.node
        yield from rounds(x.shape[0], lambda k: Tracer(build("getitem", x, index=(k,))))

    def __bool__(self):
        outcome = bool(self.node.value)
        world().guards.append(("true", self.node, None, outcome))
        return outcome

    def __float__(self):
        raise Refused(f"line {world().line}: float() of a traced value")

    def astype(self, kind, copy=True):
        kind = {_int: int, _float: float}.get(kind, kind)
        return wrap(build("astype", self.node, kind=np.dtype(kind).kind.replace("u", "i")))

    def copy(self):
        return Tracer(self.node)

    def reshape(self, *shape, order="C"):
        return call(
            np.reshape,
            self,
            shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape,
        )

    def transpose(self, *axes):
        return call(
            np.transpose,
            self,
            (axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list, type(None))) else axes)
            or None,
        )

    def item(self):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        function = name if name in FUNCTIONS else getattr(np, name, None)
        if function is None:
            raise AttributeError(name)
        return lambda *args, **kwargs: call(function, self, *args, **kwargs)


OPERATORS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "pow": np.power,
    "mod": np.remainder,
    "floordiv": np.floor_divide,
    "matmul": np.matmul,
    "gt": np.greater,
    "lt": np.less,
    "ge": np.greater_equal,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}
for op, f in OPERATORS.items():
    setattr(Tracer, f"__{op}__", lambda self, other, f=f: call(f, self, other))
    if op not in ("gt", "lt", "ge", "le", "eq", "ne"):
        setattr(Tracer, f"__r{op}__", lambda self, other, f=f: call(f, other, self))

    def inplace(self, other, f=f):
        if self.view_of is not None:  # x[i] += v: Python stores what this gives back into x
            out = call(f, self, other)
            out.owed = self.view_of
            world().owed.add(out)
            return out
        self.node = call(f, self, other).node
        return self

    if op in ("add", "sub", "mul", "truediv", "pow", "matmul"):
        setattr(Tracer, f"__i{op}__", inplace)
Tracer.__neg__ = lambda self: call(np.negative, self)
Tracer.__abs__ = lambda self: call(np.absolute, self)
Tracer.__invert__ = lambda self: call(np.logical_not, self)
Tracer.__hash__ = object.__hash__


def _count(shape):
    total = ONE
    for s in shape:
        total = total * s
    return total


def _index(node, key):
    """The operand, index arrays and index template of x[key]."""
    from handgrad.program.primitives.index import Slot

    keys = list(key) if isinstance(key, tuple) else [key]
    used = sum(
        0
        if k is None or k is Ellipsis
        else (
            k.ndim
            if isinstance(k, Tracer) and k.node.kind == "b"
            else np.ndim(k)
            if isinstance(k, np.ndarray) and k.dtype == bool
            else 1
        )
        for k in keys
    )
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    keys[at : at + 1] = [slice(None)] * (node.ndim - used)
    arrays, index, axis = [], [], 0
    for k in keys:
        if isinstance(k, (list, np.ndarray)) or isinstance(k, Tracer):
            arrays.append(as_node(unwrap(k if isinstance(k, Tracer) else np.asarray(k))))
            index.append(Slot(len(arrays) - 1))
        elif isinstance(k, slice):
            index.append(
                slice(
                    *(None if p is None else Size.of(unwrap(p)) for p in (k.start, k.stop, k.step))
                )
            )
            axis += 1
        elif k is None:
            index.append(None)
        else:
            size = Size.of(unwrap(k) if isinstance(k, TracedInt) else int(k))
            index.append(size)
            axis += 1
    return node, arrays, tuple(index)


class Mark:
    """The start of a loop, of one of its rounds, or its end, among the events of a trace."""

    def __init__(self, what, letter, count=None, round=None):
        self.what, self.letter, self.count, self.round = what, letter, count, round


def rounds(count, element):
    """The rounds of a loop, marked; `element` makes what the loop's variable is from the counter."""
    w = world()
    letter = f"t{sum(1 if e.what == 'enter' else -1 for e in w.events if isinstance(e, Mark) and e.what != 'round')}"
    number = len(w.counts)
    w.counts[number] = Size.of(count), w.length(count)
    w.counters[letter] = Size.of(count)
    w.events.append(Mark("enter", letter, Size.of(count)))
    w.open.append((number, -1))
    try:
        for i in builtins.range(w.length(count)):
            w.lengths[letter] = i
            w.open[-1] = (number, i)
            w.events.append(Mark("round", letter, round=i))
            yield element(Size.of(letter))
    finally:
        w.events.append(Mark("exit", letter))
        w.open.pop()
        w.lengths.pop(letter, None)


class Iterable:
    """Something that a loop goes over: how many, and the element at a counter."""

    def __init__(self, count, element):
        self.count, self.element = Size.of(count), element

    def __iter__(self):
        return rounds(self.count, self.element)

    def __len__(self):
        return world().length(self.count)


def iterable(x):
    if isinstance(x, Iterable):
        return x
    if isinstance(x, Tracer):
        node = x.node
        return Iterable(node.shape[0], lambda k: Tracer(build("getitem", node, index=(k,))))
    return None


def _range(*args):
    start, stop, step = (
        (Size.of(0), Size.of(unwrap(args[0])), ONE)
        if len(args) == 1
        else (*(Size.of(unwrap(a)) for a in args), ONE)[:3]
    )
    one = step.constant
    if one is None:
        count = (stop - start + step - 1) // step
    else:
        count = (
            stop - start
            if one == 1
            else (stop - start + (one - 1)) // one
            if one > 0
            else start - stop
            if one == -1
            else (start - stop + (-one - 1)) // -one
        )
    if world().length(count) < 0:
        count = Size.of(0)
    return Iterable(count, lambda k: wrap(start + step * k))


def _zip(*parts, strict=False):
    known = [iterable(p) for p in parts]
    if all(k is None for k in known):
        return builtins.zip(*parts, strict=strict)
    if any(k is None for k in known):
        return builtins.zip(*(list(k) if k else p for k, p in builtins.zip(known, parts)))
    return Iterable(known[0].count, lambda k: tuple(i.element(k) for i in known))


def _enumerate(x, start=0):
    i = iterable(x)
    return (
        builtins.enumerate(x, start)
        if i is None
        else Iterable(i.count, lambda k: (wrap(k + unwrap(start)), i.element(k)))
    )


def _reversed(x):
    i = iterable(x)
    return (
        builtins.reversed(x)
        if i is None
        else Iterable(i.count, lambda k: i.element(i.count - 1 - k))
    )


def _len(x):
    return x.shape[0] if isinstance(x, Tracer) else builtins.len(x)


def _float(x):
    return (
        Tracer(as_node(x.size))
        if isinstance(x, TracedInt)
        else x
        if isinstance(x, Tracer)
        else builtins.float(x)
    )


def _int(x=0, *base):
    return x if isinstance(x, TracedInt) else builtins.int(x, *base)


def _abs(x):
    return call(np.absolute, x) if isinstance(x, Tracer) else builtins.abs(x)


BUILTINS = {
    "range": _range,
    "zip": _zip,
    "enumerate": _enumerate,
    "reversed": _reversed,
    "len": _len,
    "float": _float,
    "int": _int,
    "abs": _abs,
}


def call(function, *args, **kwargs):
    if function not in FUNCTIONS:
        raise Refused(
            f"line {world().line}: no derivative of {getattr(function, '__name__', function)} is known"
        )
    out = wrap(FUNCTIONS[function](*map(unwrap, args), **unwrap(kwargs)))
    if function in CHANGING:
        args[0].node = out.node
        return None
    return out


class Indexer:
    """np.r_ or np.c_ as the traced function sees it."""

    def __init__(self, function):
        self._function = function

    def __getitem__(self, key):
        return call(self._function, key)


class Module:
    """A module as the traced function sees it."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if isinstance(value, types.ModuleType):
            return Module(value)
        twin = getattr(np, name, None) if self._module is math else value
        if type(value) in (type(np.r_), type(np.c_)):
            return Indexer(value)
        if isinstance(value, type) or not callable(value):
            return value

        def function(*args, **kwargs):
            if twin in CREATION or traced(args) or traced(kwargs):
                return call(twin, *args, **kwargs)
            return value(*args, **kwargs)

        function.at = getattr(value, "at", None)
        function.reduce = getattr(value, "reduce", None)
        function.accumulate = getattr(value, "accumulate", None)
        function.outer = getattr(value, "outer", None)
        function.__name__ = name
        return function


def rebound(function, done):
    """A copy of a function that sees stand-ins; functions that it calls likewise."""
    if function in done:
        return done[function]
    scope = {
        **function.__globals__,
        "__builtins__": {**vars(builtins), **BUILTINS},
    }  # before the copy is made: it keeps those it finds
    copy = types.FunctionType(
        function.__code__,
        scope,
        function.__name__,
        function.__defaults__,
        tuple(types.CellType(None) for _ in function.__closure__ or ()) or None,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    done[function] = copy

    def shown(v):
        if isinstance(v, types.ModuleType) and v.__name__.split(".")[0] in (
            "numpy",
            "math",
            "scipy",
        ):
            return Module(v)
        if isinstance(v, types.FunctionType) and v.__module__.split(".")[0] not in (
            "numpy",
            "scipy",
        ):
            return rebound(v, done)
        if isinstance(v, np.ufunc) or (
            callable(v)
            and getattr(v, "__module__", "").split(".")[0] in ("numpy", "scipy")
            and not isinstance(v, type)
        ):
            return Module(types.SimpleNamespace(f=v)).f
        return v

    used = set(names(function.__code__))
    scope.update({k: shown(v) for k, v in function.__globals__.items() if k in used})
    for cell, source in zip(copy.__closure__ or (), function.__closure__ or ()):
        cell.cell_contents = shown(source.cell_contents)
    return copy


def names(code):
    yield from code.co_names
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from names(c)


def run(function, arguments: dict):
    """What the function returns on tracers; nodes get the names of the variables that hold them."""
    done: dict = {}
    copy = rebound(function, done)
    codes = {f.__code__ for f in done}
    files = {c.co_filename for c in codes}
    w = world()

    def watch(frame, event, _):
        if frame.f_code not in codes and not (
            frame.f_code.co_name.startswith("<") and frame.f_code.co_filename in files
        ):
            return None
        for name, value in frame.f_locals.items():
            if (
                isinstance(value, Tracer)
                and not value.node.name
                and value.node.op not in ("const", "table")
            ):
                value.node.name = name
        if event == "line":
            w.line = frame.f_lineno
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        return copy(**arguments)
    finally:
        sys.settrace(before)
