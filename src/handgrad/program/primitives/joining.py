"""Arrays joined and cut: concatenate, stack, block and split in all their names."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives.axes import axis_of, equal
from handgrad.program.primitives.fixed import constant, count
from handgrad.program.primitives.index import ALL, section
from handgrad.program.primitives.rearrange import expand_dims, moveaxis, ravel, reshape, sizes
from handgrad.program.primitives.record import Gradients, Sample, Shaped, record
from handgrad.program.primitives.table import FUNCTIONS, known
from handgrad.program.rounds import guard
from handgrad.program.sizes import ONE, Size

ZERO = Size.of(0)


def joined(*xs: Node, axis: int) -> Shaped:
    """Sizes of arrays one after the other; the other axes agree."""
    total = ZERO
    for x in xs:
        total = total + x.shape[axis]
    out = [*xs[0].shape[:axis], total, *xs[0].shape[axis + 1 :]]
    for x in xs[1:]:
        for i in range(x.ndim):
            if i != axis:
                out[i] = equal(out[i], x.shape[i])
    return tuple(out), max((x.kind for x in xs), key="bifc".index)


def concatenate_vjp(g: Node, y: Node, *xs: Node, axis: int) -> Gradients:
    start = ZERO
    out = []
    for x in xs:
        out.append(section(g, axis, start, start + x.shape[axis]))
        start = start + x.shape[axis]
    return tuple(out)


def concatenate_text(name: str) -> Any:
    def text(e: Any, n: Node) -> str:
        return f"{name}(({', '.join(map(e.arg, n.args))},), {n.attrs['axis']})"

    return text


record(
    "concatenate",
    lambda *xs, axis: np.concatenate(xs, axis),
    joined,
    concatenate_vjp,
    text=concatenate_text("np.concatenate"),
    torch=concatenate_text("torch.cat"),
    rewrite=lambda *xs, axis: xs[0] if len(xs) == 1 else None,
    samples=(
        Sample(("M N", "L N"), {"axis": 0}),
        Sample(("M N", "M L", "M 1"), {"axis": 1}),
    ),
)


def pieces(arrays: Any) -> list[Node]:
    """Arrays in a list or tuple, or the parts of one array along its first axis."""
    if isinstance(arrays, Node):
        length = count(arrays.shape[0])
        return [build("getitem", arrays, index=(Size.of(i),)) for i in range(length)]
    return [FUNCTIONS[np.array](x) if isinstance(x, list | tuple) else as_node(x) for x in arrays]


@known(np.concatenate, np.concat)
def concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: str = "same_kind"
) -> Node:
    nodes = pieces(arrays)
    if axis is None:
        nodes, axis = [ravel(x) for x in nodes], 0
    if len({x.ndim for x in nodes}) > 1:
        raise ValueError("arrays of different numbers of axes")
    return build("concatenate", *nodes, axis=axis_of(constant(axis), nodes[0].ndim))


@known(np.stack)
def stack(arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, **_: Any) -> Node:
    nodes = pieces(arrays)
    return moveaxis(build("pile", *nodes), 0, axis_of(constant(axis), nodes[0].ndim + 1))


@known(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Node, ...]:
    return tuple(pieces(moveaxis(x, axis, 0)))


@known(np.vstack, getattr(np, "row_stack", np.vstack))
def vstack(arrays: Any, **_: Any) -> Node:
    nodes = pieces(arrays)
    if all(x.ndim == 1 for x in nodes):  # of a loop's rounds, which are told by their pile
        return stack(nodes)
    return concatenate([FUNCTIONS[np.atleast_2d](x) for x in nodes])


@known(np.hstack)
def hstack(arrays: Any, **_: Any) -> Node:
    nodes = pieces(arrays)
    if all(x.ndim == 0 for x in nodes):
        return stack(nodes)
    nodes = [FUNCTIONS[np.atleast_1d](x) for x in nodes]
    return concatenate(nodes, 0 if nodes[0].ndim == 1 else 1)


@known(np.dstack)
def dstack(arrays: Any) -> Node:
    nodes = pieces(arrays)
    if all(x.ndim == 2 for x in nodes):
        return stack(nodes, 2)
    return concatenate([FUNCTIONS[np.atleast_3d](x) for x in nodes], 2)


@known(np.column_stack)
def column_stack(arrays: Any) -> Node:
    nodes = pieces(arrays)
    if all(x.ndim == 1 for x in nodes):
        return stack(nodes, 1)
    return concatenate([x if x.ndim > 1 else reshape(x, (-1, 1)) for x in nodes], 1)


@known(np.append)
def append(x: Any, values: Any, axis: Any = None) -> Node:
    return concatenate((x, values), axis)


@known(np.block)
def block(arrays: Any) -> Node:
    """Nested lists: the innermost are joined along the last axis, the next along the one before."""

    def depth(each: Any) -> int:
        return 1 + max(map(depth, each)) if isinstance(each, list) else 0

    levels = depth(arrays)
    rank = max(levels, *(as_node(x).ndim for x in _leaves(arrays)), 1)

    def made(each: Any, level: int) -> Node:
        if not isinstance(each, list):
            node = as_node(each)
            return reshape(node, (*(ONE,) * (rank - node.ndim), *node.shape))
        return concatenate([made(x, level - 1) for x in each], rank - level)

    return made(arrays, levels)


def _leaves(nested: Any) -> list[Any]:
    return [x for each in nested for x in _leaves(each)] if isinstance(nested, list) else [nested]


def cuts(parts: Any, size: Size, even: bool) -> list[Any]:
    """Where an axis is cut: after each of so many parts, or at the places given."""
    w = world()
    parts = constant(parts) if not isinstance(parts, Size) else count(parts)
    if np.ndim(parts):
        return [ZERO, *(_place(p, size) for p in sizes(list(parts))), size]
    number = int(parts)
    if w.length(size % number) == 0:
        if size // number * number != size:
            guard("__eq__", size % number, ZERO, True)
        return [size // number * i for i in range(number)] + [size]
    if even:
        raise ValueError(f"an axis of {size} in {number} equal parts")
    rest = count(size % number)
    return [size // number * i + min(i, rest) for i in range(number)] + [size]


def _place(at: Size, size: Size) -> Size:
    length, n = world().length(at), world().length(size)
    inside = at if length >= 0 else size + at
    return size if length > n else ZERO if length < -n else inside


def parted(x: Any, parts: Any, axis: Any, even: bool) -> list[Node]:
    x = as_node(x)
    axis = axis_of(constant(axis), x.ndim)
    places = cuts(parts, x.shape[axis], even)
    out = []
    for a, b in pairwise(places):
        out.append(
            x
            if (a, b) == (ZERO, x.shape[axis])
            else build("getitem", x, index=(*(ALL,) * axis, slice(a, b, None)))
        )
    return out


@known(np.split)
def split(x: Any, indices_or_sections: Any, axis: Any = 0) -> list[Node]:
    return parted(x, indices_or_sections, axis, even=True)


@known(np.array_split)
def array_split(x: Any, indices_or_sections: Any, axis: Any = 0) -> list[Node]:
    return parted(x, indices_or_sections, axis, even=False)


@known(np.vsplit)
def vsplit(x: Any, indices_or_sections: Any) -> list[Node]:
    return parted(x, indices_or_sections, 0, even=True)


@known(np.hsplit)
def hsplit(x: Any, indices_or_sections: Any) -> list[Node]:
    return parted(x, indices_or_sections, 0 if as_node(x).ndim == 1 else 1, even=True)


@known(np.dsplit)
def dsplit(x: Any, indices_or_sections: Any) -> list[Node]:
    return parted(x, indices_or_sections, 2, even=True)


def _ranged(part: slice) -> Node:
    """A slice in an index of np.r_: numbers from start to stop, evenly spaced where imaginary."""
    step = part.step
    if isinstance(step, complex):
        return as_node(FUNCTIONS[np.linspace](part.start or 0, part.stop, int(abs(step))))
    return as_node(FUNCTIONS[np.arange](part.start or 0, part.stop, 1 if step is None else step))


@known(np.r_)
def rows(key: Any) -> Node:
    """Joined along the first axis, or as the string before says: axis, rank, place of new axes."""
    return _joined_by(key, "0")


@known(np.c_)
def columns(key: Any) -> Node:
    """Joined along the last axis of arrays of two axes, vectors as columns."""
    return _joined_by(key, "-1,2,0")


@known(np.mgrid)
def grid(key: Any) -> Node:
    """The places of a grid, those along each axis in an array of its own."""
    if not isinstance(key, tuple):
        return _ranged(key)
    return as_node(FUNCTIONS[np.stack](FUNCTIONS[np.meshgrid](*map(_ranged, key), indexing="ij")))


@known(np.ogrid)
def open_grid(key: Any) -> Any:
    """The same as arrays that spread to the grid."""
    if not isinstance(key, tuple):
        return _ranged(key)
    parts = FUNCTIONS[np.meshgrid](*map(_ranged, key), indexing="ij", sparse=True)
    return tuple(parts)


def _joined_by(key: Any, how: str) -> Node:
    keys: Sequence[Any] = key if isinstance(key, tuple) else (key,)
    if isinstance(keys[0], str):
        how, keys = keys[0], keys[1:]
        if how in ("r", "c"):
            how = "0,2,0" if how == "c" else "0,2"
    numbers = [int(p) for p in how.split(",")]
    axis, rank = numbers[0], numbers[1] if len(numbers) > 1 else 1
    first = numbers[2] if len(numbers) > 2 else -1
    nodes = []
    for each in keys:
        n = _ranged(each) if isinstance(each, slice) else FUNCTIONS[np.array](each)
        new = rank - n.ndim
        if new > 0:
            before = new if first < 0 else min(first, new)
            places = [*range(before), *range(before + n.ndim, rank)]
            n = expand_dims(n, tuple(places))
        nodes.append(FUNCTIONS[np.atleast_1d](n))
    return concatenate(nodes, axis)
