"""Functions of NumPy that change arrays, ask for facts or take whole numbers, on tracers."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.program.arithmetic import FUNCTIONS
from handgrad.program.integers import is_whole
from handgrad.program.node import FIXED, Node, as_node, world
from handgrad.program.primitives.table import CREATION
from handgrad.program.rounds import Iterable, Pile, within_round
from handgrad.program.sizes import Size
from handgrad.program.tracer import SPECIAL, TracedInt, Tracer, call, traced, wrap


def special(*keys: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(f: Callable[..., Any]) -> Callable[..., Any]:
        SPECIAL.update(dict.fromkeys(keys, f))
        return f

    return keep


@special("outer")
def _outer(ufunc: Any, a: Any, b: Any, **_: Any) -> Any:
    return call(ufunc, traced_array(a)[(..., *(None,) * np.ndim(b))], b)


@special("at")
def _at(ufunc: Any, array: Any, index: Any, value: Any = None) -> None:
    if type(array) is not Tracer:
        world().refuse(f"np.{ufunc.__name__}.at changes an array from outside the function")
    if ufunc is np.add:
        array.assign_at("add_at", index, value)
    elif ufunc is np.subtract:
        array.assign_at("add_at", index, -value)
    elif ufunc in (np.maximum, np.minimum):
        array.assign_at(f"{ufunc.__name__}_at", index, value)
    else:
        world().refuse(f"np.{ufunc.__name__}.at is not known; np.add.at is")


def traced_array(x: Any) -> Tracer:
    if type(x) is Tracer:
        return x
    if type(x) is Iterable and x.line is not None:
        start, step = map(wrap, x.line)
        return call(np.arange, wrap(x.count)) * step + start
    if type(x) in (bool, int, float, complex):
        return Tracer(as_node(x))
    return x.scalar() if type(x) is TracedInt else Tracer(as_node(np.asarray(x)))


@special(np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray)
def _asarray(x: Any, dtype: Any = None, order: Any = None, copy: Any = None, **_: Any) -> Any:
    """The array itself where it is one of the type: changes in place are seen by both."""
    out = x if type(x) is Tracer and not copy else _array(x)
    return out if dtype is None or np.dtype(dtype) == out.dtype else out.astype(dtype)


@special(np.array, np.copy)
def _array(x: Any, dtype: Any = None, **_: Any) -> Any:
    if type(x) is Pile and x.array is not None:
        out = x.array
    elif isinstance(x, list | tuple):
        parts = [_array(v) if isinstance(v, list | tuple) else v for v in x]
        with within_round(_round_of(parts)):
            out = call(np.stack, parts)
    else:
        out = traced_array(x).copy()
    return out if dtype is None else out.astype(dtype)


@special(np.apply_along_axis)
def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of each line along an axis, in a loop; its own axes come in the axis' place."""
    x = traced_array(arr)
    if x.ndim == 1:
        return func1d(x, *args, **kwargs)
    axis = int(axis) % x.ndim
    lines = call(np.moveaxis, x, axis, -1)
    lead = lines.shape[:-1]
    flat = lines if x.ndim == 2 else lines.reshape((-1, lines.shape[-1]))
    found = _array([func1d(line, *args, **kwargs) for line in flat])
    if x.ndim > 2:
        found = found.reshape((*lead, *found.shape[1:]))
    own = range(found.ndim - len(lead))
    places = [len(lead) + k for k in own], [axis + k for k in own]
    return call(np.moveaxis, found, *places) if own else found


class Vectorized:
    """np.vectorize as the traced function sees it: a loop over the elements of its arguments."""

    def __init__(
        self,
        pyfunc: Callable[..., Any] | None = None,
        *_: Any,
        excluded: Any = None,
        signature: Any = None,
        **__: Any,
    ) -> None:
        self._function, self._signature = pyfunc, signature
        self._excluded = frozenset(excluded or ())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:  # a decorator with settings
            return Vectorized(args[0], excluded=self._excluded, signature=self._signature)
        if self._signature is not None:
            world().refuse("np.vectorize with a signature is not known; write a loop")
        if not traced((args, kwargs)):
            return np.vectorize(self._function, excluded=self._excluded)(*args, **kwargs)
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        names = [name for name in given if name not in self._excluded]
        first, *others = call(np.broadcast_arrays, *(given[name] for name in names))
        flat = [each.reshape((-1,)) for each in (first, *others)]
        n = flat[0].shape[0]
        count = n.size if type(n) is TracedInt else n
        places = Iterable(count, lambda k: TracedInt(world().length(k), k))
        found = _array([self._of_one(given, names, [each[k] for each in flat]) for k in places])
        return found.reshape(first.shape)

    def _of_one(self, given: dict[Any, Any], names: list[Any], elements: list[Any]) -> Any:
        """The function of one element of each argument."""
        assert self._function is not None
        here = {**given, **dict(zip(names, elements, strict=True))}
        args = [value for name, value in here.items() if isinstance(name, int)]
        return self._function(*args, **{k: v for k, v in here.items() if isinstance(k, str)})


@special(np.fromiter)
def _fromiter(iter: Any, dtype: Any = None, count: int = -1, **_: Any) -> Any:
    found = list(iter)
    found = found if count < 0 else found[:count]
    return _array(found, dtype) if traced(found) else np.array(found, dtype)


CREATION.add(np.fromiter)


def _round_of(parts: list[Any]) -> tuple[tuple[int, int], ...]:
    """The rounds, of loops around each other, that all traced arrays of a list were made in."""
    known = [v.node.rounds for v in parts if type(v) is Tracer and v.node.op not in FIXED]
    alike = itertools.takewhile(lambda each: len(set(each)) == 1, zip(*known, strict=False))
    return tuple(each[0] for each in alike)


@special(np.astype)
def _astype(x: Any, dtype: Any, **_: Any) -> Any:
    return traced_array(x).astype(dtype)


@special(np.ndim)
def _ndim(a: Any) -> int:
    return a.ndim if type(a) is Tracer else np.ndim(_leaf(a)) + _depth(a)


@special(np.shape)
def _shape(a: Any) -> Any:
    return a.shape if type(a) is Tracer else () if type(a) is TracedInt else _array(a).shape


@special(np.size)
def _size(a: Any, axis: int | None = None) -> Any:
    array = traced_array(a) if not isinstance(a, list | tuple) else _array(a)
    whole = functools.reduce(operator.mul, array.shape, 1)
    return whole if axis is None else array.shape[axis]


def _depth(a: Any) -> int:
    return 1 + _depth(a[0]) if type(a) in (list, tuple) else 0


def _leaf(a: Any) -> Any:
    if type(a) in (list, tuple):
        return _leaf(a[0])
    return np.empty((1,) * a.ndim) if type(a) is Tracer else 0


@special(np.isscalar)
def _isscalar(x: Any) -> bool:
    return not isinstance(x, np.ndarray)


@special(np.iscomplexobj)
def _iscomplexobj(x: Any) -> bool:
    return type(x) is Tracer and x.held.kind == "c"


@special(np.isrealobj)
def _isrealobj(x: Any) -> bool:
    return not _iscomplexobj(x)


@special(np.result_type, np.promote_types)
def _result_type(*things: Any) -> Any:
    return np.result_type(*(t.dtype if type(t) is Tracer else t for t in things))


@special(np.shares_memory, np.may_share_memory)
def _shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    return np.may_share_memory(*(x.held.value if type(x) is Tracer else x for x in (a, b)))


@special(np.allclose)
def _allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, **_: Any) -> bool:
    return bool((abs(a - b) <= atol + rtol * abs(b)).all())


@special(np.array_equal)
def _array_equal(a: Any, b: Any, **_: Any) -> bool:
    return tuple(_shape(a)) == tuple(_shape(b)) and bool(call(np.equal, a, b).all())


def _on_wholes(python: Callable[[Any], Any]) -> Callable[..., Any]:
    """A reduction that keeps whole numbers whole: np.prod(x.shape[1:])."""

    def f(x: Any, *args: Any, **kwargs: Any) -> Any:
        if type(x) in (tuple, list) and x and all(map(is_whole, x)):
            return python(x)
        return NotImplemented

    return f


special(np.prod)(_on_wholes(lambda x: functools.reduce(operator.mul, x)))
special(np.sum)(_on_wholes(sum))
special(np.max)(_on_wholes(max))
special(np.min)(_on_wholes(min))


@special(math.prod)
def _math_prod(x: Any, start: Any = 1) -> Any:
    return functools.reduce(operator.mul, x, start)


def size_quotient(x: Any, up: bool = False) -> TracedInt | None:
    """The whole number of a quotient of sizes, rounded down or up; None for anything else."""
    node = x.node if type(x) is Tracer else None
    if node is None:
        return None
    if node.op in ("floor", "ceil"):
        return size_quotient(Tracer(node.args[0]), up=node.op == "ceil")
    if node.op == "divide":
        top, bottom = map(_as_size, node.args)
        if top is not None and bottom is not None:
            quotient = (top + bottom - 1) // bottom if up else top // bottom
            return TracedInt(world().length(quotient), quotient)
    size = _as_size(node)
    return None if size is None else TracedInt(world().length(size), size)


def _as_size(node: Node) -> Size | None:
    if node.op == "size":
        return Size.of(node.attrs["size"])
    if node.op == "const" and float(node.attrs["value"]).is_integer():
        return Size.of(int(node.attrs["value"]))
    if node.op in ("multiply", "add", "subtract", "negative"):
        sides = [_as_size(a) for a in node.args]
        known = [s for s in sides if s is not None]
        if len(known) == len(sides):
            size: Size = FUNCTIONS[node.op](*known)
            return size
    return None


def rounded(x: Any, up: bool) -> Any:
    """math.floor and math.ceil, which give whole numbers."""
    if type(x) is TracedInt:
        return x
    whole = size_quotient(x, up)
    if whole is not None:
        return whole
    ceiling = call(np.ceil if up else np.floor, x)
    return ceiling.astype(int).__index__()


@special(math.floor)
def _floor(x: Any) -> Any:
    return rounded(x, up=False)


@special(math.ceil)
def _ceil(x: Any) -> Any:
    return rounded(x, up=True)


@special(math.log)
def _log(x: Any, base: Any = None) -> Any:
    return (
        call(np.log, x)
        if base is None
        else call(np.log, x) / (call(np.log, base) if traced(base) else math.log(base))
    )


@special(math.fsum)
def _fsum(x: Any) -> Any:
    return functools.reduce(operator.add, x, 0)
