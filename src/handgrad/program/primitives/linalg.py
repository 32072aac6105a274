"""Linear algebra on the last two axes: systems, inverses, determinants, powers and norms."""

from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives.axes import axis_of, broadcast, equal, product, same, unbroadcast
from handgrad.program.primitives.contract import conjugated, matmul
from handgrad.program.primitives.fixed import constant, count
from handgrad.program.primitives.rearrange import moveaxis, swapaxes
from handgrad.program.primitives.record import (
    Gradients,
    Sample,
    Shaped,
    invertible,
    record,
    triangle,
)
from handgrad.program.primitives.table import FUNCTIONS, known, module_of_scipy, refuse
from handgrad.program.sizes import ONE, Size

Shape = tuple[Size, ...]
SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))


def mT(x: Node) -> Node:  # noqa: N802 (NumPy's name)
    """The matrices transposed."""
    return swapaxes(x, -1, -2)


def mH(x: Node) -> Node:  # noqa: N802
    """The matrices transposed and conjugated."""
    return mT(conjugated(x))


def mm(*factors: Node) -> Node:
    """A product of matrices, from the left."""
    out = factors[0]
    for each in factors[1:]:
        out = matmul(out, each)
    return out


def over_matrix(g: Node) -> Node:
    """A number for each matrix, beside its elements."""
    return build("reshape", g, shape=(*g.shape, ONE, ONE))


def square(x: Node) -> None:
    """Matrices have as many rows as columns, here and for every size."""
    if x.ndim < 2:
        raise ValueError(f"an array of {x.ndim} axes is no matrix")
    equal(x.shape[-2], x.shape[-1])


def of_squares(x: Node, **_: Any) -> Shaped:
    square(x)
    return same(x)


def of_each(x: Node, **_: Any) -> Shaped:
    square(x)
    return x.shape[:-2], x.kind


def inv_vjp(g: Node, y: Node, x: Node) -> Gradients:
    return (-mm(mT(y), g, mT(y)),)


def solve_shape(a: Node, b: Node) -> Shaped:
    square(a)
    kind = "c" if "c" in (a.kind, b.kind) else "f"
    if b.ndim == 1:
        equal(a.shape[-1], b.shape[0])
        return a.shape[:-1], kind
    equal(a.shape[-1], b.shape[-2])
    batch = [Node("input", (), {}, x.shape[:-2]) for x in (a, b)]
    return (*broadcast(*batch)[0], *b.shape[-2:]), kind


def product_of(db: Node, y: Node, vector: bool) -> Node:
    """The outer product of a solution's adjoint and the solution."""
    if vector:
        rows = build("reshape", db, shape=(*db.shape, ONE))
        return rows * build("reshape", y, shape=(*y.shape[:-1], ONE, y.shape[-1]))
    return matmul(db, mT(y))


def solve_vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
    if b.ndim == 1 and a.ndim > 2:
        columns = build("reshape", g, shape=(*g.shape, ONE))
        db = build("reshape", build("solve", mT(a), columns), shape=g.shape)
    else:
        db = build("solve", mT(a), g)
    da = -product_of(db, y, b.ndim == 1)
    return unbroadcast(da, a), unbroadcast(db, b)


def det_vjp(g: Node, y: Node, x: Node) -> Gradients:
    return (over_matrix(g * y) * mT(build("inv", x)),)


def slogdet_vjp(gs: Gradients, y: Node, x: Node) -> Gradients:
    """The sign is constant; the logarithm's gradient is the inverse transposed."""
    g = gs[1]
    return (None,) if g is None else (over_matrix(g) * mT(build("inv", x)),)


_ONE_MATRIX = Sample(("M M",), draws=(invertible,))
_MATRICES = Sample(("L M M",), draws=(invertible,))

record(
    "inv",
    np.linalg.inv,
    of_squares,
    inv_vjp,
    text="np.linalg.inv",
    torch="torch.linalg.inv",
    analytic=True,
    samples=(_ONE_MATRIX, _MATRICES),
)
record(
    "solve",
    np.linalg.solve,
    solve_shape,
    solve_vjp,
    text="np.linalg.solve",
    torch="torch.linalg.solve",
    analytic=True,
    samples=(
        Sample(("M M", "M"), draws=(invertible,)),
        Sample(("M M", "M N"), draws=(invertible,)),
        Sample(("L M M", "M N"), draws=(invertible,)),
        Sample(("M M", "L M N"), draws=(invertible,)),
    ),
)
record(
    "det",
    np.linalg.det,
    of_each,
    det_vjp,
    text="np.linalg.det",
    torch="torch.linalg.det",
    analytic=True,
    samples=(_ONE_MATRIX, _MATRICES),
)
record(
    "slogdet",
    lambda x: tuple(np.linalg.slogdet(x)),
    lambda x: ((), "f"),
    slogdet_vjp,
    parts=lambda x: (of_each(x), of_each(x)),
    text="np.linalg.slogdet",
    torch="torch.linalg.slogdet",
    samples=(_ONE_MATRIX, _MATRICES),
)


def triangular_text(e: Any, n: Node) -> str:
    a, b = map(e.arg, n.args)
    unit = ", unit_diagonal=True" if n.attrs["unit"] else ""
    return f"scipy.linalg.solve_triangular({a}, {b}, lower={n.attrs['lower']}{unit})"


def triangular_torch(e: Any, n: Node) -> str:
    a, b = n.args
    upper = not n.attrs["lower"]
    unit = ", unitriangular=True" if n.attrs["unit"] else ""
    columns = e.arg(b) if b.ndim > 1 else f"{e.arg(b, 9)}[:, None]"
    text = f"torch.linalg.solve_triangular({e.arg(a)}, {columns}, upper={upper}{unit})"
    return text if b.ndim > 1 else f"{text}[:, 0]"


def triangular_value(a: Any, b: Any, lower: bool, unit: bool) -> Any:
    return module_of_scipy("linalg").solve_triangular(a, b, lower=lower, unit_diagonal=unit)


def triangular_vjp(g: Node, y: Node, a: Node, b: Node, lower: bool, unit: bool) -> Gradients:
    db = build("solve_triangular", mT(a), g, lower=not lower, unit=unit)
    k = (-1 if lower else 1) if unit else 0
    return -build("tril" if lower else "triu", product_of(db, y, b.ndim == 1), k=k), db


record(
    "solve_triangular",
    triangular_value,
    lambda a, b, lower, unit: solve_shape(a, b),
    triangular_vjp,
    text=triangular_text,
    torch=triangular_torch,
    jax=lambda e, n: f"jax.{triangular_text(e, n)}",
    samples=(
        Sample(("M M", "M N"), {"lower": True, "unit": False}, (triangle,)),
        Sample(("M M", "M"), {"lower": True, "unit": True}, (triangle,)),
        Sample(("M M", "M"), {"lower": False, "unit": False}, (invertible,)),
    ),
)


@known(np.linalg.inv)
def inv(a: Any) -> Node:
    return build("inv", a)


@known(np.linalg.solve)
def solve(a: Any, b: Any) -> Node:
    return build("solve", a, b)


@known(np.linalg.det)
def det(a: Any) -> Node:
    return build("det", a)


@known(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    node = build("slogdet", a)
    return SlogdetResult(*(build("part", node, index=i) for i in range(2)))


@known(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Node:
    x, y = as_node(a), as_node(b)
    if axes is not None:
        for k in constant(axes):
            x = moveaxis(x, k, x.ndim - 1)
    rest = x.shape[y.ndim :]
    matrix = build("reshape", x, shape=(product(x.shape[: y.ndim]), product(rest)))
    flat = build("reshape", y, shape=(product(y.shape),))
    return build("reshape", build("solve", matrix, flat), shape=rest)


@known(np.linalg.tensorinv)
def tensorinv(a: Any, ind: Any = 2) -> Node:
    x = as_node(a)
    k = count(ind)
    first, second = x.shape[:k], x.shape[k:]
    matrix = build("reshape", x, shape=(product(first), product(second)))
    return build("reshape", build("inv", matrix), shape=(*second, *first))


@known(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Node:
    """A power by squares; of the inverse where the exponent is negative."""
    x, power = as_node(a), count(n)
    square(x)
    if power < 0:
        x, power = build("inv", x), -power
    if power == 0:
        eye = build("eye", rows=x.shape[-1], columns=x.shape[-1], k=0)
        return build("broadcast_to", eye, shape=x.shape)
    out: Node | None = None
    while True:
        if power % 2:
            out = x if out is None else matmul(out, x)
        power //= 2
        if not power:
            assert out is not None
            return out
        x = matmul(x, x)


@known(np.cross, getattr(np.linalg, "cross", np.cross))
def cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Node:
    """The vector product of vectors of three; with vectors of two, the third component alone."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (moveaxis(v, constant(k), -1) for v, k in ((as_node(a), axisa), (as_node(b), axisb)))
    lengths = [world().length(v.shape[-1]) for v in (x, y)]
    for v, length in zip((x, y), lengths, strict=True):
        if length not in (2, 3):
            raise ValueError(f"a vector product of vectors of {length}")
        count(v.shape[-1])

    def part(v: Node, length: int, k: int) -> Node | None:
        if k >= length:
            return None
        return build("getitem", v, index=(*(slice(None),) * (v.ndim - 1), Size.of(k)))

    p, q = ([part(v, n, k) for k in range(3)] for v, n in zip((x, y), lengths, strict=True))

    def minor(i: int, j: int) -> Node:
        terms = [(p[i], q[j]), (p[j], q[i])]
        first, second = (None if u is None or v is None else u * v for u, v in terms)
        if first is None:
            assert second is not None
            return -second
        return first if second is None else first - second

    if lengths == [2, 2]:
        return minor(0, 1)
    parts = [minor(1, 2), minor(2, 0), minor(0, 1)]
    return as_node(FUNCTIONS[np.stack](parts, axis_of(constant(axisc), parts[0].ndim + 1)))


@known(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Node:
    """The largest singular value over the smallest, or a norm times that of the inverse."""
    norm = FUNCTIONS[np.linalg.matrix_norm]
    x = as_node(x)
    if p in (None, 2):
        return build("divide", norm(x, ord=2), norm(x, ord=-2))
    return build("multiply", norm(x, ord=p), norm(build("inv", x), ord=p))


@known(np.linalg.matrix_rank)
def matrix_rank(*_: Any, **__: Any) -> Node:
    refuse("the rank of a traced matrix decides nothing here", "the rank as a number")
