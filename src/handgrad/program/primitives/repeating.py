"""Arrays made longer or into differences: pad, tile, repeat, windows, diff and gradient."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives.axes import axes_of, axis_of
from handgrad.program.primitives.fixed import constant, count
from handgrad.program.primitives.index import ALL, Slot, along, section
from handgrad.program.primitives.joining import concatenate
from handgrad.program.primitives.kinds import cast
from handgrad.program.primitives.rearrange import flip, ravel, reshape, sizes, spread
from handgrad.program.primitives.table import FUNCTIONS, known, refuse
from handgrad.program.sizes import ONE, Size

ZERO = Size.of(0)


@known(np.repeat)
def repeat(x: Any, repeats: Any, axis: Any = None) -> Node:
    """Each element so many times, one number for all or one for each."""
    x = as_node(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(constant(axis), x.ndim)
    if np.ndim(repeats.value if isinstance(repeats, Node) else repeats):
        times = np.broadcast_to(constant(repeats), (world().length(x.shape[axis]),))
        if x.shape[axis].constant is None:
            count(x.shape[axis])
        places = as_node(np.repeat(np.arange(len(times)), times))
        return build("getitem", x, places, index=along(axis, Slot(0)))
    (r,) = sizes(repeats)
    before, after = x.shape[: axis + 1], x.shape[axis + 1 :]
    wide = spread(build("reshape", x, shape=(*before, ONE, *after)), (*before, r, *after))
    return build("reshape", wide, shape=(*before[:-1], before[-1] * r, *after))


@known(np.tile)
def tile(x: Any, reps: Any) -> Node:
    x = as_node(x)
    times = sizes(reps)
    rank = max(x.ndim, len(times))
    times = (*(ONE,) * (rank - len(times)), *times)
    shape = (*(ONE,) * (rank - x.ndim), *x.shape)
    both = list(zip(times, shape, strict=True))
    narrow = build("reshape", x, shape=tuple(s for _, size in both for s in (ONE, size)))
    wide = spread(narrow, tuple(s for pair in both for s in pair))
    return build("reshape", wide, shape=tuple(r * s for r, s in both))


def widths(given: Any, rank: int) -> list[tuple[Size, Size]]:
    """Return how much is padded before and after each axis, in the forms that NumPy takes."""
    if isinstance(given, Node):
        given = constant(given)
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, tuple | list):
        return [(Size.of(given), Size.of(given))] * rank
    if not isinstance(given[0], tuple | list):
        pair = sizes(given) * (2 if len(given) == 1 else 1)
        return [(pair[0], pair[1])] * rank
    pairs = [sizes(each) * (2 if len(each) == 1 else 1) for each in given]
    return [(p[0], p[1]) for p in (pairs * rank if len(pairs) == 1 else pairs)]


def constant_pad(x: Node, pairs: list[tuple[Size, Size]], value: Any) -> Node:
    """A base of one value with the array in its middle."""
    shape = tuple(a + s + b for (a, b), s in zip(pairs, x.shape, strict=True))
    middle = tuple(
        ALL if a == ZERO and b == ZERO else slice(a, a + s, None)
        for (a, b), s in zip(pairs, x.shape, strict=True)
    )
    if not isinstance(value, Node) and np.ndim(value) == 0 and value == 0:
        kind = {} if x.kind == "f" else {"kind": x.kind}
        return build("add_at", build("zeros", shape=shape, **kind), x, index=middle)
    if np.ndim(value.value if isinstance(value, Node) else value):
        refuse("np.pad with a constant for each side is not known", "np.concatenate")
    edge = as_node(value)  # of x's type, as both libraries have it
    if edge.kind != x.kind and x.kind == "f":
        edge = as_node(float(edge.value)) if edge.op == "const" else cast(edge, float)
    return build("store", spread(edge, shape), x, index=middle)


def mirrored(x: Node, axis: int, a: int, b: int, mode: str) -> Node:
    """An axis padded by its own elements."""
    length = count(x.shape[axis])
    if length == 1 and mode == "reflect":
        mode = "edge"
    places = np.pad(np.arange(length), (a, b), mode=mode)  # type: ignore[call-overload]
    return build("getitem", x, places, index=along(axis, Slot(0)))


def edged(x: Node, axis: int, a: Size, b: Size, mode: str) -> Node:
    """An axis padded by its edge, or by mirrored elements that lie within it, for every length."""
    size, w = x.shape[axis], world()
    if mode == "edge":
        shape = (*x.shape[:axis], ONE, *x.shape[axis + 1 :])
        ends = section(x, axis, 0, 1), section(x, axis, size - 1, size)
        before, after = (
            spread(build("reshape", end, shape=shape), (*shape[:axis], n, *shape[axis + 1 :]))
            for end, n in zip(ends, (a, b), strict=True)
        )
    else:
        skip = 1 if mode == "reflect" else 0
        if mode == "wrap":
            before, after = section(x, axis, size - a, size), section(x, axis, 0, b)
        else:
            before = flip(section(x, axis, skip, a + skip), axis)
            after = flip(section(x, axis, size - b - skip, size - skip), axis)
    parts = [p for p, n in ((before, a), (x, ONE), (after, b)) if w.length(n)]
    return concatenate(parts, axis)


@known(np.pad)
def pad(
    x: Any,
    pad_width: Any,
    mode: Any = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    **options: Any,
) -> Node:
    """Modes constant, edge, reflect, symmetric, wrap, and empty as constant."""
    x = as_node(x)
    pairs = widths(pad_width, x.ndim)
    if mode in ("constant", "empty"):
        return constant_pad(x, pairs, constant_values)
    if mode not in ("edge", "reflect", "symmetric", "wrap") or options:
        refuse(
            f"np.pad with mode {mode!r} is not known",
            "mode 'constant', 'edge', 'reflect', 'symmetric' or 'wrap'",
        )
    w = world()
    for axis, (a, b) in enumerate(pairs):
        if w.length(a) == 0 and w.length(b) == 0:
            continue
        room = w.length(x.shape[axis]) - (1 if mode == "reflect" else 0)
        if mode == "edge" or max(w.length(a), w.length(b)) <= room:
            x = edged(x, axis, a, b, mode)
        else:
            x = mirrored(x, axis, count(a), count(b), mode)
    return as_node(x)


@known(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Node:
    """Windows as an array of places along the axis: H - K + 1 windows of K elements."""
    x = as_node(x)
    windows = sizes(window_shape)
    axes = range(x.ndim) if axis is None else np.atleast_1d(constant(axis))
    for a, k in zip([axis_of(i, x.ndim) for i in axes], windows, strict=True):
        starts = build("arange", size=x.shape[a] - k + 1)
        places = build("reshape", starts, shape=(*starts.shape, ONE)) + build("arange", size=k)
        x = build("getitem", x, places, index=along(a, Slot(0)))
        x = FUNCTIONS[np.moveaxis](x, a + 1, -1)
    return as_node(x)


@known(np.lib.stride_tricks.as_strided)
def as_strided(x: Any, shape: Any = None, strides: Any = None, **_: Any) -> Node:
    """Each axis of the view walks along one axis of the array, in so many of its elements.

    The strides are those of doubles in the order of C, as `Tracer.strides` gives them.
    """
    x = as_node(x)
    given = x.shape if shape is None else sizes(shape)
    own = [each * 8 for each in elements(x.shape)]
    if strides is None or any(isinstance(each, int) and each for each in strides):
        refuse("as_strided: strides in bytes are those of one type", "multiples of x.strides")
    walks = [_walk(each, own) for each in sizes(strides)]
    for axis in reversed(range(x.ndim)):
        places = as_node(ZERO)
        along_it = [k for k, (way, _) in enumerate(walks) if way == axis]
        if [(given[k], walks[k][1]) for k in along_it] == [(x.shape[axis], ONE)]:
            continue
        for k in along_it:
            spot = tuple(given[i] if i == k else ONE for i in along_it)
            walked = build("reshape", build("arange", size=given[k]), shape=spot)
            places = places + walked * walks[k][1]
        x = build("getitem", x, places, index=along(axis, Slot(0)))
    order = sorted(range(len(walks)), key=lambda k: walks[k][0])
    return build("transpose", x, axes=tuple(map(order.index, range(len(walks)))))


def elements(shape: Sequence[Size]) -> list[Size]:
    """By how many elements the neighbours along each axis are apart, in the order of C."""
    found = [ONE]
    for size in reversed(shape[1:]):
        found.insert(0, found[0] * size)
    return found[: len(shape)]


def _walk(stride: Size, own: Sequence[Size]) -> tuple[int, Size]:
    """The axis along which a stride goes, and by how many of its elements."""
    steps = [
        (world().length(stride // each), axis, stride // each) for axis, each in enumerate(own)
    ]
    exact = [(n, axis, step) for n, axis, step in steps if step * own[axis] == stride]
    if not exact:
        refuse("as_strided: a stride is along no axis", "multiples of the array's strides")
    _, axis, step = min(exact)[:3]
    return axis, step


def stepped(x: Node, axis: int) -> Node:
    """Differences of neighbours."""
    size = x.shape[axis]
    later, earlier = section(x, axis, 1, size), section(x, axis, 0, size - 1)
    return build("not_equal", later, earlier) if x.kind == "b" else later - earlier


@known(np.diff)
def diff(x: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Node:
    x = as_node(x)
    a = axis_of(constant(axis), x.ndim)
    ends = []
    for end in (prepend, append):
        if end is not None:
            node = as_node(end)
            one = (*x.shape[:a], ONE, *x.shape[a + 1 :])
            ends.append([spread(node, one) if node.ndim == 0 else node])
        else:
            ends.append([])
    if any(ends):
        x = concatenate([*ends[0], x, *ends[1]], a)
    for _ in range(count(n)):
        x = stepped(x, a)
    return as_node(x)


@known(np.ediff1d)
def ediff1d(x: Any, to_end: Any = None, to_begin: Any = None) -> Node:
    parts = [stepped(ravel(x), 0)]
    if to_begin is not None:
        parts.insert(0, ravel(to_begin))
    if to_end is not None:
        parts.append(ravel(to_end))
    return concatenate(parts, 0) if len(parts) > 1 else parts[0]


def slope(x: Node, axis: int, spacing: Any, edge_order: int) -> Node:
    """Central differences inside, one-sided ones at the ends."""
    size = x.shape[axis]
    ends: Sequence[Node]

    def at(start: Any, stop: Any) -> Node:
        return section(x, axis, start, stop)

    if np.ndim(spacing.value if isinstance(spacing, Node) else spacing):
        h = as_node(spacing)
        shape = tuple(Size.of(-1) if i == axis else ONE for i in range(x.ndim))
        h = reshape(stepped(h, 0), shape)
        left, right = (section(h, axis, a, b) for a, b in ((0, size - 2), (1, size - 1)))
        middle = (
            at(2, size) * (left / (right * (left + right)))
            + at(1, size - 1) * ((right - left) / (left * right))
            - at(0, size - 2) * (right / (left * (left + right)))
        )
        steps = section(h, axis, 0, 1), section(h, axis, size - 2, size - 1)
        if edge_order == 2:
            refuse("np.gradient with places and edge_order 2 is not known", "edge_order=1")
    else:
        middle = (at(2, size) - at(0, size - 2)) / (2.0 * as_node(spacing))
        steps = as_node(spacing), as_node(spacing)
    if edge_order == 2:
        ends = (
            (4.0 * at(1, 2) - 3.0 * at(0, 1) - at(2, 3)) / (2.0 * steps[0]),
            (3.0 * at(size - 1, size) - 4.0 * at(size - 2, size - 1) + at(size - 3, size - 2))
            / (2.0 * steps[1]),
        )
    else:
        ends = (
            (at(1, 2) - at(0, 1)) / steps[0],
            (at(size - 1, size) - at(size - 2, size - 1)) / steps[1],
        )
    return concatenate([ends[0], middle, ends[1]], axis)


@known(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = as_node(f)
    axes = axes_of(constant(axis), x.ndim)
    if axis is not None and isinstance(axis, tuple | list):
        axes = tuple(axis_of(a, x.ndim) for a in axis)
    spacings = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    out = [slope(x, a, h, edge_order) for a, h in zip(axes, spacings, strict=True)]
    return out[0] if len(out) == 1 else tuple(out)
