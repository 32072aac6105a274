"""NumPy's functions in terms of the primitives: the one place that knows NumPy's signatures."""

import numpy as np

from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives import arrays as A
from handgrad.program.primitives import contract as C
from handgrad.program.primitives.axes import axes_of, product
from handgrad.program.primitives.table import FUNCTIONS, creation, known
from handgrad.program.sizes import ONE, Size

n = as_node
FUNCTIONS |= C.FUNCTIONS


def sizes(shape):
    return tuple(map(Size.of, shape if isinstance(shape, (tuple, list)) else (shape,)))


# Rearrangements.
@known(np.reshape)
def reshape(x, shape, order="C"):
    x = n(x)
    shape = list(sizes(shape))
    for i, s in enumerate(shape):
        if s.constant == -1:
            shape[i] = product(x.shape) // product(shape[:i] + shape[i + 1 :])
    return build("reshape", x, shape=tuple(shape))


@known(np.ravel)
def ravel(x, order="C"):
    return reshape(x, (-1,))


@known(np.transpose)
def transpose(x, axes=None):
    x = n(x)
    return build(
        "transpose", x, axes=tuple(a % x.ndim for a in axes) if axes else tuple(range(x.ndim))[::-1]
    )


@known(np.swapaxes)
def swapaxes(x, axis1, axis2):
    order = list(range(n(x).ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return transpose(x, order)


@known(np.moveaxis)
def moveaxis(x, source, destination):
    x = n(x)
    s, d = ([a % x.ndim for a in np.atleast_1d(v)] for v in (source, destination))
    order = [a for a in range(x.ndim) if a not in s]
    for to, a in sorted(zip(d, s)):
        order.insert(to, int(a))
    return transpose(x, order)


@known(np.expand_dims)
def expand_dims(x, axis):
    x = n(x)
    rank = x.ndim + (len(axis) if isinstance(axis, tuple) else 1)
    axes = axes_of(axis, rank)
    rest = iter(x.shape)
    return build("reshape", x, shape=tuple(ONE if i in axes else next(rest) for i in range(rank)))


@known(np.squeeze)
def squeeze(x, axis=None):
    x = n(x)
    axes = [i for i, s in enumerate(x.shape) if s == ONE] if axis is None else axes_of(axis, x.ndim)
    return build("reshape", x, shape=tuple(s for i, s in enumerate(x.shape) if i not in axes))


@known(np.broadcast_to)
def broadcast_to(x, shape):
    return build("broadcast_to", x, shape=sizes(shape))


@known(np.flip)
def flip(x, axis=None):
    return build("flip", x, axis=axes_of(axis, n(x).ndim))


@known(np.roll)
def roll(x, shift, axis=None):
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), n(x).shape)
    return build("roll", x, shift=sizes(shift), axis=axes_of(axis, n(x).ndim))


@known(np.concatenate)
def concatenate(xs, axis=0, **_):
    xs = [ravel(x) for x in xs] if axis is None else list(map(n, xs))
    return build("concatenate", *xs, axis=(axis or 0) % xs[0].ndim)


@known(np.stack)
def stack(xs, axis=0):
    xs = list(map(n, xs))
    rank = xs[0].ndim + 1
    piled = build("pile", *xs)
    return moveaxis(piled, 0, axis % rank)


@known(np.vstack)
def vstack(xs):
    return concatenate([x if n(x).ndim > 1 else reshape(x, (1, -1)) for x in xs], 0)


@known(np.hstack)
def hstack(xs):
    xs = [x if n(x).ndim else reshape(x, (1,)) for x in xs]
    return concatenate(xs, 0 if n(xs[0]).ndim == 1 else 1)


@known(np.column_stack)
def column_stack(xs):
    return concatenate([x if n(x).ndim > 1 else reshape(x, (-1, 1)) for x in xs], 1)


@known(np.split, np.array_split)
def split(x, parts, axis=0):
    x = n(x)
    axis %= x.ndim
    size = x.shape[axis]
    w = world()
    if isinstance(parts, (int, Size)):
        count = w.length(parts)
        length = w.length(size)
        cuts = (
            [Size.of(0)]
            + [
                size // parts * i
                if length % count == 0
                else Size.of(sum(length // count + (j < length % count) for j in range(i)))
                for i in range(1, count)
            ]
            + [size]
        )
        if isinstance(parts, Size) and parts.constant is None:
            w.guards.append(("==", parts, Size.of(count), True))
    else:
        cuts = [Size.of(0), *map(Size.of, parts), size]
    return [
        build("getitem", x, index=(slice(None),) * axis + (slice(a, b, None),))
        for a, b in zip(cuts, cuts[1:])
    ]


@known(np.repeat)
def repeat(x, repeats, axis=None):
    x = n(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis %= x.ndim
    r = Size.of(repeats)
    wide = build(
        "broadcast_to",
        expand_dims(x, axis + 1),
        shape=x.shape[: axis + 1] + (r,) + x.shape[axis + 1 :],
    )
    return build("reshape", wide, shape=x.shape[:axis] + (x.shape[axis] * r,) + x.shape[axis + 1 :])


@known(np.tile)
def tile(x, reps):
    x = n(x)
    reps = sizes(reps)
    rank = max(x.ndim, len(reps))
    reps = (ONE,) * (rank - len(reps)) + reps
    shape = (ONE,) * (rank - x.ndim) + x.shape
    narrow = build("reshape", x, shape=tuple(s for size in shape for s in (ONE, size)))
    wide = build(
        "broadcast_to", narrow, shape=tuple(s for r, size in zip(reps, shape) for s in (r, size))
    )
    return build("reshape", wide, shape=tuple(r * s for r, s in zip(reps, shape)))


@known(np.pad)
def pad(x, width, mode="constant", constant_values=0):
    x = n(x)
    if mode != "constant":
        raise NotImplementedError(f"np.pad with mode {mode}")
    width = [width] if not isinstance(width, (tuple, list)) else list(width)
    pairs = (
        [(width[0], width[0])] * x.ndim
        if len(width) == 1 and not isinstance(width[0], (tuple, list))
        else [tuple(width)] * x.ndim
        if not isinstance(width[0], (tuple, list))
        else [tuple(p) * (2 if len(p) == 1 else 1) for p in width]
        * (x.ndim if len(width) == 1 else 1)
    )
    base = full(tuple(Size.of(a) + s + b for (a, b), s in zip(pairs, x.shape)), constant_values)
    return build(
        "add_at" if constant_values == 0 else "store",
        base,
        x,
        index=tuple(slice(Size.of(a), Size.of(a) + s, None) for (a, _), s in zip(pairs, x.shape)),
    )


@known(np.diagonal)
def diagonal(x, offset=0, axis1=0, axis2=1):
    x = n(x)
    return build("diagonal", x, axis1=axis1 % x.ndim, axis2=axis2 % x.ndim)


@known(np.trace)
def trace(x, offset=0, axis1=0, axis2=1):
    d = diagonal(x, 0, axis1, axis2)
    return build("sum", d, axis=(d.ndim - 1,), keepdims=False)


@known(np.diag)
def diag(x, k=0):
    x = n(x)
    if x.ndim == 2:
        return diagonal(x)
    return x * build("eye", rows=x.shape[0], columns=x.shape[0], k=0)


@known(np.tril)
def tril(x, k=0):
    return build("tril", x, k=k)


@known(np.triu)
def triu(x, k=0):
    return build("triu", x, k=k)


# Selection.
@known(np.take)
def take(x, indices, axis=None, mode=None):
    x, i = n(x), n(indices)
    if axis is None:
        x, axis = ravel(x), 0
    return build("getitem", x, i, index=(slice(None),) * (axis % x.ndim) + (A.Slot(0),))


@known(np.take_along_axis)
def take_along_axis(x, indices, axis=-1):
    x, i = n(x), n(indices)
    axis %= x.ndim
    others = [a for a in range(x.ndim) if a != axis]
    places = {
        a: build(
            "reshape",
            build("arange", size=i.shape[a]),
            shape=tuple(i.shape[a] if b == a else ONE for b in range(x.ndim)),
        )
        for a in others
    }
    return build(
        "getitem",
        x,
        *(i if a == axis else places[a] for a in range(x.ndim)),
        index=tuple(A.Slot(a) for a in range(x.ndim)),
    )


# Creation: always traced, so that sizes keep their letters.
def kind_of(dtype):
    """A type as an attribute, floats left out: they follow the operands."""
    name = getattr(dtype, "__name__", str(dtype)).lstrip("_")
    return {} if dtype is None or "float" in name else {"kind": "b" if "bool" in name else "i"}


@creation(np.zeros, np.empty)
def zeros(shape, dtype=None, order="C"):
    return build("zeros", shape=sizes(shape), **kind_of(dtype))


@creation(np.ones)
def ones(shape, dtype=None):
    return build("ones", shape=sizes(shape))


@creation(np.full)
def full(shape, value, dtype=None):
    return (
        build("broadcast_to", value, shape=sizes(shape))
        if value != 0 or isinstance(value, Node)
        else build("zeros", shape=sizes(shape))
    )


@creation(np.eye, np.identity)
def eye(rows, columns=None, k=0, dtype=None):
    return build(
        "eye", rows=Size.of(rows), columns=Size.of(columns if columns is not None else rows), k=k
    )


@creation(np.tri)
def tri(rows, columns=None, k=0, dtype=None):
    return build(
        "tril",
        build("ones", shape=(Size.of(rows), Size.of(columns if columns is not None else rows))),
        k=k,
    )


@creation(np.arange)
def arange(start, stop=None, step=1, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    count = (
        (Size.of(stop) - start + (step - 1)) // step if isinstance(step, int) and step > 0 else None
    )
    if count is None:
        raise NotImplementedError("np.arange with this step")
    return build("arange", size=count) * step + start


@known(np.zeros_like, np.empty_like)
def zeros_like(x, dtype=None, **_):
    return build("zeros", shape=n(x).shape)


@known(np.ones_like)
def ones_like(x, dtype=None, **_):
    return build("ones", shape=n(x).shape)


@known(np.full_like)
def full_like(x, value, dtype=None, **_):
    return full(n(x).shape, value)


@known(np.array, np.asarray, np.ascontiguousarray)
def array(x, dtype=None, copy=None, **_):
    if not isinstance(x, (list, tuple)):
        return n(x)
    return stack([array(v) for v in x])


@known(np.shape)
def shape(x):
    return n(x).shape


@known(np.atleast_1d)
def atleast_1d(x):
    return x if n(x).ndim else reshape(x, (1,))


# Linear algebra and special functions.
@known(np.linalg.inv)
def inv(x):
    return build("inv", x)


@known(np.linalg.solve)
def solve(a, b):
    return build("solve", a, b)


@known(np.linalg.det)
def det(x):
    return build("det", x)


@known(np.linalg.slogdet)
def slogdet(x):
    return (build("sign", build("det", x)), build("logdet", x))


@known(np.linalg.cholesky)
def cholesky(x):
    return build("cholesky", x)
