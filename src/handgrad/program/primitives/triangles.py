"""Triangles and diagonals of matrices."""

from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.axes import axis_of, same
from handgrad.program.primitives.fixed import constant, is_within, smaller
from handgrad.program.primitives.index import ALL, Slot, zeros_for
from handgrad.program.primitives.rearrange import ravel, reshape, sizes
from handgrad.program.primitives.record import Gradients, Sample, Shaped, record
from handgrad.program.primitives.table import changing, known, refuse
from handgrad.program.sizes import ONE, Size

ZERO = Size.of(0)


def triangle_text(name: str) -> Any:
    def text(e: Any, n: Node) -> str:
        k = n.attrs["k"]
        offset = "" if Size.of(k) == ZERO else f", {e.size(k)}"
        return f"{name}({e.arg(n.args[0])}{offset})"

    return text


for name, function in (("tril", np.tril), ("triu", np.triu)):
    record(
        name,
        function,
        same,
        lambda g, y, x, k: (build(y.op, g, k=k),),
        text=triangle_text(f"np.{name}"),
        torch=triangle_text(f"torch.{name}"),
        samples=(
            Sample(("M N",), {"k": 0}),
            Sample(("M N",), {"k": 1}),
            Sample(("L M N",), {"k": -1}),
        ),
    )


def shifts(offset: Size | int) -> tuple[Size, Size]:
    """By how much a diagonal lies lower and farther right; which, is as on the example."""
    right = Size.of(offset)
    return (ZERO, right) if smaller(ZERO, right) == ZERO else (-right, ZERO)


def diagonal_size(x: Node, offset: Size | int, axis1: int, axis2: int) -> Size:
    """The length of a diagonal: rows or columns, the fewer, after the offset."""
    rows, columns = x.shape[axis1], x.shape[axis2]
    down, right = shifts(offset)
    far, along = (down, rows) if right == ZERO else (right, columns)
    if far != ZERO and smaller(far, along) != far:
        return ZERO
    return smaller(rows - down, columns - right)


def diagonal_shape(x: Node, axis1: int, axis2: int, offset: Size | int) -> Shaped:
    rest = tuple(s for i, s in enumerate(x.shape) if i not in (axis1, axis2))
    return (*rest, diagonal_size(x, offset, axis1, axis2)), x.kind


def diagonal_vjp(
    g: Node, y: Node, x: Node, axis1: int, axis2: int, offset: Size | int
) -> Gradients:
    """The gradient put on the diagonal of zeros."""
    first, second = places(y.shape[-1], offset)
    index = tuple(Slot(0) if a == axis1 else Slot(1) if a == axis2 else ALL for a in range(x.ndim))
    low, high = sorted((axis1, axis2))
    to = low if high == low + 1 else 0
    rest = list(range(g.ndim - 1))
    rest.insert(to, g.ndim - 1)
    turned = build("transpose", g, axes=tuple(rest))
    return (build("store", zeros_for(g, x), turned, first, second, index=index),)


def places(length: Size, offset: Size | int) -> tuple[Node, Node]:
    """Rows and columns of a diagonal."""
    i = build("arange", size=length)
    down, right = shifts(offset)
    return i + as_node(down), i + as_node(right)


def diagonal_text(name: str) -> Any:
    def text(e: Any, n: Node) -> str:
        x, offset = e.arg(n.args[0]), e.size(n.attrs["offset"])
        return f"{name}({x}, {offset}, {n.attrs['axis1']}, {n.attrs['axis2']})"

    return text


record(
    "diagonal",
    lambda x, axis1, axis2, offset: np.diagonal(x, offset, axis1, axis2),
    diagonal_shape,
    diagonal_vjp,
    text=diagonal_text("np.diagonal"),
    torch=diagonal_text("torch.diagonal"),
    samples=(
        Sample(("M M",), {"axis1": 0, "axis2": 1, "offset": 0}),
        Sample(("M M L",), {"axis1": 1, "axis2": 0, "offset": 1}),
        Sample(("M L M",), {"axis1": 0, "axis2": 2, "offset": -1}),
        Sample(("L M M",), {"axis1": 1, "axis2": 2, "offset": 0}),
    ),
)


@known(np.diagonal, getattr(np.linalg, "diagonal", np.diagonal))
def diagonal(x: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Node:
    x = as_node(x)
    return build(
        "diagonal",
        x,
        axis1=axis_of(constant(axis1), x.ndim),
        axis2=axis_of(constant(axis2), x.ndim),
        offset=offset_of(offset),
    )


@known(np.diag)
def diag(v: Any, k: Any = 0) -> Node:
    """The diagonal of a matrix, or a matrix with a vector on its diagonal."""
    x = as_node(v)
    if x.ndim == 2:
        return diagonal(x, k)
    offset = offset_of(k)
    is_within(ZERO, Size.of(offset))
    down, right = shifts(offset)
    size = x.shape[0] + down + right
    first, second = places(x.shape[0], offset)
    kind = {} if x.kind == "f" else {"kind": x.kind}
    zeros = build("zeros", shape=(size, size), **kind)
    return build("store", zeros, x, first, second, index=(Slot(0), Slot(1)))


@known(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Node:
    return diag(ravel(v), k)


@known(np.tril)
def tril(m: Any, k: Any = 0) -> Node:
    return build("tril", m, k=offset_of(k))


@known(np.triu)
def triu(m: Any, k: Any = 0) -> Node:
    return build("triu", m, k=offset_of(k))


def offset_of(k: Any) -> Any:
    """A diagonal's number: a size that stays in letters, or a constant."""
    if isinstance(k, Size):
        return k if k.constant is None else k.constant
    return int(constant(k))


@known(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Node:
    """Powers of a vector as columns."""
    x = as_node(x)
    (size,) = sizes(x.shape[0] if N is None else N)
    powers = build("arange", size=size)
    if not increasing:
        powers = as_node(size - 1) - powers
    return build("power", reshape(x, (-1, ONE)), powers)


@changing(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> Node:
    """The array with a value on its diagonal; the trace puts it in the array's place."""
    a = as_node(a)
    if wrap:
        refuse("np.fill_diagonal with wrap= is not known", "x[i, j] = value")
    length = a.shape[0]
    for other in a.shape[1:]:
        length = length if is_within(length, other) else other
    i = build("arange", size=length)
    return build("store", a, val, *(i,) * a.ndim, index=tuple(map(Slot, range(a.ndim))))
