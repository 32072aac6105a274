"""Selections by arrays of integers and conditions, in NumPy's functions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives.axes import axis_of, broadcast, product
from handgrad.program.primitives.fixed import constant, count
from handgrad.program.primitives.index import Slot, along, mask_size
from handgrad.program.primitives.joining import concatenate, pieces, stack
from handgrad.program.primitives.rearrange import ravel, reshape, sizes, spread
from handgrad.program.primitives.record import (
    Sample,
    Shaped,
    mask,
    no_gradient,
    record,
)
from handgrad.program.primitives.table import applied, changing, creation, known, refuse
from handgrad.program.sizes import ONE, Size


def found(x: Node) -> tuple[Shaped, ...]:
    """One array of integers for each axis, as long as there are elements that are not 0."""
    return (((mask_size(x),), "i"),) * x.ndim


record(
    "nonzero",
    np.nonzero,
    lambda x: ((), "i"),
    no_gradient,
    parts=found,
    text="np.nonzero",
    torch=lambda e, n: f"torch.nonzero({e.arg(n.args[0])}, as_tuple=True)",
    samples=(Sample(("M N",), draws=(mask,)),),
)


@known(np.nonzero)
def nonzero(a: Any) -> tuple[Node, ...]:
    x = as_node(a)
    node = build("nonzero", x)
    return tuple(build("part", node, index=i) for i in range(x.ndim))


@creation(np.tril_indices)
def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Node, ...]:
    """Rows and columns of a triangle, whose number of elements is a letter of its own."""
    return nonzero(build("not_equal", applied(np.tri, n, m, k), 0))


@creation(np.triu_indices)
def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Node, ...]:
    return nonzero(build("equal", applied(np.tri, n, m, k - 1), 0))


@creation(np.diag_indices)
def diag_indices(n: Any, ndim: int = 2) -> tuple[Node, ...]:
    return (applied(np.arange, n),) * ndim


@known(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[Node, ...]:
    x = as_node(arr)
    return diag_indices(x.shape[0], x.ndim)


@known(np.tril_indices_from)
def tril_indices_from(arr: Any, k: Any = 0) -> tuple[Node, ...]:
    n, m = as_node(arr).shape
    return tril_indices(n, k, m)


@known(np.triu_indices_from)
def triu_indices_from(arr: Any, k: Any = 0) -> tuple[Node, ...]:
    n, m = as_node(arr).shape
    return triu_indices(n, k, m)


@known(np.isin)
def isin(element: Any, test_elements: Any, *_: Any, invert: Any = False, **__: Any) -> Node:
    """True where an element equals one of the others."""
    x, others = as_node(element), ravel(test_elements)
    same = build("equal", reshape(x, (*x.shape, ONE)), others)
    found = build("any", same, axis=(x.ndim,), keepdims=False)
    return build("logical_not", found) if invert else found


@known(np.resize)
def resize(a: Any, new_shape: Any) -> Node:
    """The elements again and again, as far as the new shape goes."""
    x, shape = ravel(a), sizes(new_shape)
    places = build("remainder", build("arange", size=product(shape)), as_node(x.shape[0]))
    return reshape(build("getitem", x, places, index=(Slot(0),)), shape)


@known(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Node, ...]:
    """For each axis the place of an element that is numbered through."""
    rest, out = as_node(indices), []
    lengths = sizes(shape)
    for n in reversed(lengths) if order == "C" else lengths:
        out.append(build("remainder", rest, as_node(n)))
        rest = build("floor_divide", rest, as_node(n))
    return tuple(reversed(out)) if order == "C" else tuple(out)


@known(np.flatnonzero)
def flatnonzero(a: Any) -> Node:
    return nonzero(ravel(a))[0]


@known(np.argwhere)
def argwhere(a: Any) -> Node:
    return stack(nonzero(a), 1)


@known(np.where)
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return nonzero(condition)
    return build("where", condition, x, y)


@known(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Node:
    x, i = as_node(a), as_node(indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(constant(axis), x.ndim)
    if mode != "raise":
        size = as_node(x.shape[axis])
        i = (
            build("remainder", i, size)
            if mode == "wrap"
            else build("minimum", build("maximum", i, 0), size - 1)
        )
    return build("getitem", x, i, index=along(axis, Slot(0)))


def beside(i: Node, axis: int, shape: tuple[Size, ...]) -> list[Node]:
    """Index arrays for places along one axis, those of the other axes counted."""
    rank = len(shape)
    out = []
    for a in range(rank):
        if a == axis:
            out.append(i)
        else:
            alone = tuple(shape[a] if b == a else ONE for b in range(rank))
            out.append(build("reshape", build("arange", size=shape[a]), shape=alone))
    return out


@known(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Node:
    x, i = as_node(arr), as_node(indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(constant(axis), x.ndim)
    index = tuple(map(Slot, range(x.ndim)))
    shape = tuple(s if t == ONE else t for s, t in zip(x.shape, i.shape, strict=True))
    return build("getitem", x, *beside(i, axis, shape), index=index)


@changing(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Node:
    """The array with values at places; the trace puts it in the array's place."""
    x, i = as_node(arr), as_node(indices)
    axis = axis_of(constant(axis), x.ndim)
    index = tuple(map(Slot, range(x.ndim)))
    shape = tuple(s if t == ONE else t for s, t in zip(x.shape, i.shape, strict=True))
    return build("store", x, values, *beside(i, axis, shape), index=index)


@changing(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Node:
    if mode != "raise":
        refuse("np.put with mode= is not known", "indices within the array")
    x = as_node(a)
    flat = build("store", ravel(x), v, as_node(ind), index=(Slot(0),))
    return build("reshape", flat, shape=x.shape)


@changing(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Node:
    x = as_node(dst)
    src = as_node(src)
    return spread(src, x.shape) if where is True else build("where", where, src, x)


@changing(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> Node:
    """One value where a mask holds; of several, NumPy takes each in its turn."""
    if as_node(values).ndim:
        refuse("np.putmask and np.place of several values are not known", "x[mask] = values")
    return build("where", mask, values, a)


@changing(np.place)
def place(arr: Any, mask: Any, vals: Any) -> Node:
    return putmask(arr, mask, vals)


@known(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Node:
    """Of several arrays the one that an integer names, element by element."""
    i = as_node(a)
    nodes = pieces(choices)
    shape = broadcast(i, *nodes)[0]
    piled = stack([spread(x, shape) for x in nodes])
    places = spread(i, shape)
    index = tuple(map(Slot, range(len(shape) + 1)))
    rest = beside(reshape(places, (ONE, *shape)), 0, (ONE, *shape))[1:]
    return build("getitem", piled, places, *(_inner(r) for r in rest), index=index)


def _inner(x: Node) -> Node:
    return build("reshape", x, shape=x.shape[1:])


@known(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Node:
    """The first choice whose condition holds."""
    out = as_node(default)
    chosen = list(zip(pieces(condlist), pieces(choicelist), strict=True))
    for condition, choice in reversed(chosen):
        truth = condition if condition.kind == "b" else build("not_equal", condition, 0)
        out = build("where", truth, choice, out)
    return out


@known(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Node:
    """The last condition that holds decides; functions are taken of the whole array."""
    node = as_node(x)
    conditions = pieces(condlist) if isinstance(condlist, tuple | list | Node) else [condlist]
    functions = list(funclist)
    values = [_applied(f, node, args, kw) for f in functions]
    extra = values[len(conditions) :]
    out = extra[0] if extra else build("zeros", shape=node.shape)
    for condition, value in zip(conditions, values, strict=False):
        out = build("where", condition, value, out)
    return out


def _applied(f: Any, x: Node, args: Any, kw: Any) -> Any:
    if not callable(f):
        return f
    from handgrad.program.trace import unwrap, wrap

    return unwrap(f(wrap(x), *args, **kw))


@known(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Node:
    x = as_node(a)
    if axis is None:
        x, axis = ravel(x), 0
    kept = as_node(condition)
    a_ = axis_of(constant(axis), x.ndim)
    if kept.op in ("const", "table"):
        places = as_node(np.flatnonzero(kept.value))
        return build("getitem", x, places, index=along(a_, Slot(0)))
    return build("getitem", x, kept, index=along(a_, Slot(0)))


@known(np.extract)
def extract(condition: Any, arr: Any) -> Node:
    return compress(ravel(condition), ravel(arr), 0)


@known(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Node:
    """Without the elements at constant places; the axis' length is fixed."""
    x = as_node(arr)
    if axis is None:
        x, axis = ravel(x), 0
    a = axis_of(constant(axis), x.ndim)
    where = _plain(obj)
    if isinstance(where, int) and where in (0, -1):
        size = x.shape[a]
        part = slice(ONE, None, None) if where == 0 else slice(None, size - 1, None)
        return build("getitem", x, index=along(a, part))
    left = np.delete(np.arange(count(x.shape[a])), where)
    return build("getitem", x, as_node(left), index=along(a, Slot(0)))


def _plain(obj: Any) -> Any:
    if isinstance(obj, slice):
        return slice(*(None if p is None else count(p) for p in (obj.start, obj.stop, obj.step)))
    out = constant(obj)
    return out if isinstance(out, int) else np.asarray(out)


@known(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Node:
    """With values before a constant place."""
    x = as_node(arr)
    if axis is None:
        x, axis = ravel(x), 0
    a = axis_of(constant(axis), x.ndim)
    at = _plain(obj)
    if not isinstance(at, int):
        refuse("np.insert at several places is not known", "np.concatenate of the pieces")
    value = as_node(values)
    before, after = (*x.shape[:a],), (*x.shape[a + 1 :],)
    if value.ndim == x.ndim:
        size = value.shape[a]
    else:
        size = ONE if value.ndim < x.ndim and (x.ndim > 1 or value.ndim == 0) else value.shape[0]
        if value.ndim == x.ndim - 1 and value.ndim:
            value = build("reshape", value, shape=(*value.shape[:a], ONE, *value.shape[a:]))
    value = spread(value, (*before, size, *after))
    length = x.shape[a]
    cut = Size.of(at) if at >= 0 else length + at
    first = build("getitem", x, index=along(a, slice(None, cut, None)))
    last = build("getitem", x, index=along(a, slice(cut, None, None)))
    parts = [p for p in (first, value, last) if world().length(p.shape[a])]
    return concatenate(parts, a)


def _unique_parts(x: Node) -> tuple[Shaped, ...]:
    size = mask_size(x, once=True)
    return ((size,), x.kind), ((size,), "i"), (x.shape, "i"), ((size,), "i")


record(
    "unique",
    lambda x: tuple(np.unique(x, return_index=True, return_inverse=True, return_counts=True)),
    lambda x: ((), "i"),
    no_gradient,
    parts=_unique_parts,
    text=lambda e, n: (
        f"np.unique({e.arg(n.args[0])}, return_index=True, return_inverse=True, return_counts=True)"
    ),
)


@known(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    **_: Any,
) -> Any:
    """Different values in order; those of floats are taken from where they stand first."""
    x = as_node(ar)
    if axis is not None:
        refuse("np.unique along an axis is not known")
    node = build("unique", x)
    part: Callable[[int], Node] = lambda i: build("part", node, index=i)  # noqa: E731
    values = part(0)
    if x.kind in "fc":
        values = build("getitem", ravel(x), part(1), index=(Slot(0),))
    asked = (return_index, return_inverse, return_counts)
    out = [values, *(part(i + 1) for i, wanted in enumerate(asked) if wanted)]
    return out[0] if len(out) == 1 else tuple(out)


@known(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Node:
    """How often each number comes, or the sum of its weights; the length is given or fixed."""
    i = as_node(x)
    length = int(i.value.max()) + 1 if np.size(i.value) else 0
    least = Size.of(count(minlength) if isinstance(minlength, Node) else minlength)
    if i.op == "table" and least.constant is not None:
        least = Size.of(max(length, least.constant))
    if world().length(least) < length:
        refuse("the length of np.bincount is not known", "minlength=K with K above all numbers")
    values = as_node(1 if weights is None else weights)
    base = build("zeros", shape=(least,), **({"kind": "i"} if weights is None else {}))
    return build("add_at", base, values, i, index=(Slot(0),))


@known(np.ix_)
def ix_(*args: Any) -> tuple[Node, ...]:
    """Index arrays of which each goes along an axis of its own."""
    out = []
    for k, each in enumerate(map(as_node, args)):
        x = nonzero(each)[0] if each.kind == "b" else each
        alone = tuple(product(x.shape) if i == k else ONE for i in range(len(args)))
        out.append(build("reshape", x, shape=alone))
    return tuple(out)
