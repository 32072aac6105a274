"""Axes of operands and results: broadcasting, its transpose, and the ways NumPy names axes."""

from collections.abc import Iterable
from typing import Any

from handgrad.program.arranging import axis_of as axis_of
from handgrad.program.node import ByChance, Node, build, world
from handgrad.program.sizes import ONE, Size

Shape = tuple[Size, ...]


def equal(a: Size, b: Size) -> Size:
    """Two axes that the program lines up: the same size, or a guard says so."""
    if a == b:
        return a
    w = world()
    if w.length(a) != w.length(b):
        raise ByChance(
            w.at_line(
                f"axes of {a} and {b} do not meet, of which one is 1 on the example by chance; "
                "write lengths in letters that make them equal, such as 2*N"
            )
        )
    if (rule := ("==", a, b, True)) not in w.guards:
        w.guards.append(rule)
    return a if b.constant is None else b


def broadcast(*nodes: Node, **_: Any) -> tuple[Shape, str]:
    """Sizes of operands spread over each other, and the widest of their kinds."""
    rank = max(n.ndim for n in nodes)
    sizes = [ONE] * rank
    for n in nodes:
        for i, s in enumerate(n.shape, rank - n.ndim):
            if s != ONE:
                sizes[i] = s if sizes[i] == ONE else equal(sizes[i], s)
    return tuple(sizes), max((n.kind for n in nodes), key="bifc".index)


def floating(*nodes: Node, **_: Any) -> tuple[Shape, str]:
    """Broadcast operands of a function whose values are floats."""
    sizes, kind = broadcast(*nodes)
    return sizes, "c" if kind == "c" else "f"


def boolean(*nodes: Node, **_: Any) -> tuple[Shape, str]:
    """Broadcast operands of a function whose values are true or false."""
    return broadcast(*nodes)[0], "b"


def same(x: Node, **_: Any) -> tuple[Shape, str]:
    """The sizes and kind of the operand."""
    return x.shape, x.kind


def unbroadcast(g: Node, like: Node) -> Node:
    """A gradient in the shape of the operand that was broadcast."""
    extra = g.ndim - like.ndim
    axes = tuple(
        i
        for i in range(g.ndim)
        if i < extra or (like.shape[i - extra] == ONE and g.shape[i] != ONE)
    )
    if axes:
        g = build("sum", g, axis=axes, keepdims=False)
    return g if g.ndim == like.ndim else build("reshape", g, shape=like.shape)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """An axis, several, or None for all, as sorted numbers from 0."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(axis_of(a, ndim) for a in given))


def product(sizes: Iterable[Size]) -> Size:
    """The number of elements."""
    total = ONE
    for s in sizes:
        total = total * s
    return total


def reduced(x: Node, axis: tuple[int, ...], keepdims: bool) -> Shape:
    """Sizes without some axes, or with ones in their place."""
    return tuple(
        ONE if i in axis else s for i, s in enumerate(x.shape) if keepdims or i not in axis
    )


def spread(g: Node, x: Node, axis: tuple[int, ...]) -> Node:
    """A reduction's gradient along the axes it went over."""
    kept = build("reshape", g, shape=reduced(x, axis, keepdims=True))
    return build("broadcast_to", kept, shape=x.shape)
