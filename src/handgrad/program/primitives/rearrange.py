"""Rearrangements of one array: axes split, merged, permuted, spread, flipped and rolled."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from handgrad.program.arranging import ORDERS, axis_of
from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives.axes import (
    axes_of,
    broadcast,
    equal,
    product,
    same,
    unbroadcast,
)
from handgrad.program.primitives.fixed import constant
from handgrad.program.primitives.record import Sample, Shaped, record
from handgrad.program.primitives.table import applied, known
from handgrad.program.sizes import ONE, Size

Shape = tuple[Size, ...]
_M, _N, _L = Size.of("M"), Size.of("N"), Size.of("L")


def sizes(shape: Any) -> Shape:
    """A shape as NumPy takes it: one size or several."""
    if isinstance(shape, Node):
        shape = constant(shape)
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    listed = shape if isinstance(shape, tuple | list) else (shape,)
    return tuple(s if isinstance(s, Size) else Size.of(int(constant(as_node(s)))) for s in listed)


def number_as_array(e: Any, n: Node) -> str:
    """An array of the shape of a node that is made of one number."""
    kind = e.dtype() if n.kind == "f" else ""
    return f"np.full({e.sizes(n.attrs['shape'])}, {e.text(n.args[0])}{kind})"


def reshape_text(e: Any, n: Node) -> str:
    """New axes of one by None, else by reshape."""
    x, new = n.args[0], n.attrs["shape"]
    if e.is_number(x) and new:
        return number_as_array(e, n)
    inserted = tuple(s for s in new if s != ONE) == x.shape and ONE not in x.shape
    if inserted and new:
        return f"{e.arg(x, 9)}[{', '.join('None' if s == ONE else ':' for s in new)}]"
    return f"{e.arg(x, 9)}.reshape({', '.join(map(e.size, new)) if new else '()'})"


def reshape_rule(x: Node, shape: Shape) -> Node | None:
    if tuple(shape) == x.shape:
        return x
    return build("reshape", x.args[0], shape=shape) if x.op == "reshape" else None


def transpose_rule(x: Node, axes: tuple[int, ...]) -> Node | None:
    if axes == tuple(range(x.ndim)):
        return x
    if x.op == "transpose":
        return build("transpose", x.args[0], axes=tuple(x.attrs["axes"][a] for a in axes))
    if x.op == "contract":
        out = tuple(x.attrs["out"][a] for a in axes)
        return build("contract", *x.args, **{**x.attrs, "out": out})
    return None


def flip_rule(x: Node, axis: tuple[int, ...]) -> Node | None:
    if not axis:
        return x
    return x.args[0] if x.op == "flip" and x.attrs["axis"] == axis else None


def spread_shape(x: Node, shape: Shape) -> Shaped:
    """The shape asked for; the operand's axes are those that they line up with, or one."""
    new = len(shape) - x.ndim
    return (
        *shape[:new],
        *(s if t == ONE else equal(s, t) for s, t in zip(shape[new:], x.shape, strict=True)),
    ), x.kind


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """The permutation that puts axes back."""
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def transpose_text(method: str) -> Any:
    def text(e: Any, n: Node) -> str:
        axes = n.attrs["axes"]
        x = e.arg(n.args[0], 9)
        return f"{x}.T" if axes == (1, 0) else f"{x}.{method}{axes}"

    return text


def axis_text(axis: tuple[int, ...]) -> str:
    """Axes as an argument: a number where there is one."""
    return str(axis[0] if len(axis) == 1 else axis)


record(
    "reshape",
    lambda x, shape: np.reshape(x, shape),
    lambda x, shape: (shape, x.kind),
    lambda g, y, x, shape: (build("reshape", g, shape=x.shape),),
    text=reshape_text,
    rewrite=reshape_rule,
    samples=(
        Sample(("M N",), {"shape": (_M * _N,)}),
        Sample(("M N",), {"shape": (ONE, _M, ONE, _N)}),
        Sample(("M N L",), {"shape": (_M * _N, _L)}),
    ),
)
record(
    "transpose",
    lambda x, axes: np.transpose(x, axes),
    lambda x, axes: (tuple(x.shape[a] for a in axes), x.kind),
    lambda g, y, x, axes: (build("transpose", g, axes=inverse(axes)),),
    text=transpose_text("transpose"),
    torch=transpose_text("permute"),
    rewrite=transpose_rule,
    samples=(Sample(("M N",), {"axes": (1, 0)}), Sample(("M N L",), {"axes": (2, 0, 1)})),
)


def spread_text(e: Any, n: Node) -> str:
    """A number that is spread is an array made of it."""
    if e.is_number(n.args[0]):
        return number_as_array(e, n)
    return f"np.broadcast_to({e.arg(n.args[0])}, {e.sizes(n.attrs['shape'])})"


record(
    "broadcast_to",
    lambda x, shape: np.broadcast_to(x, shape),
    spread_shape,
    lambda g, y, x, shape: (unbroadcast(g, x),),
    text=spread_text,
    rewrite=lambda x, shape: x if tuple(shape) == x.shape else None,
    samples=(
        Sample(("N",), {"shape": (_M, _N)}),
        Sample(("M 1",), {"shape": (_L, _M, _N)}),
    ),
)
record(
    "flip",
    lambda x, axis: np.flip(x, axis),
    same,
    lambda g, y, x, axis: (build("flip", g, axis=axis),),
    text=lambda e, n: f"np.flip({e.arg(n.args[0])}, {axis_text(n.attrs['axis'])})",
    torch=lambda e, n: f"torch.flip({e.arg(n.args[0])}, {n.attrs['axis']})",
    rewrite=flip_rule,
    samples=(Sample(("M N",), {"axis": (0,)}), Sample(("M N",), {"axis": (0, 1)})),
)
record(
    "roll",
    lambda x, shift, axis: np.roll(x, shift, axis),
    same,
    lambda g, y, x, shift, axis: (build("roll", g, shift=tuple(-s for s in shift), axis=axis),),
    text=lambda e, n: (
        f"np.roll({e.arg(n.args[0])}, {e.sizes(n.attrs['shift'])}, {n.attrs['axis']})"
    ),
    torch=lambda e, n: (
        f"torch.roll({e.arg(n.args[0])}, {e.sizes(n.attrs['shift'])}, {n.attrs['axis']})"
    ),
    samples=(
        Sample(("M N",), {"shift": (_N // 2,), "axis": (1,)}),
        Sample(("M N",), {"shift": (ONE, Size.of(-2)), "axis": (0, 1)}),
    ),
)


def spread(x: Any, shape: Shape) -> Node:
    """An operand broadcast to a shape; an axis is checked against the one that it becomes."""
    return build("broadcast_to", x, shape=shape)


def in_columns(order: str) -> bool:
    """Return whether the first axis is the one that runs fastest, as in Fortran."""
    return order == "F"


@known(np.reshape)
def reshape(x: Any, shape: Any = None, order: str = "C", *, copy: Any = None) -> Node:
    x = as_node(x)
    if in_columns(order):
        turned = reshape(applied(np.transpose, x), tuple(reversed(sizes(shape))))
        return applied(np.transpose, turned)
    new = list(sizes(shape))
    for i, s in enumerate(new):
        if s.constant == -1:
            new[i] = product(x.shape) // product(new[:i] + new[i + 1 :])
    if world().length(product(new)) != world().length(product(x.shape)):
        raise ValueError(f"cannot reshape an array of {product(x.shape)} elements to {new}")
    return build("reshape", x, shape=tuple(new))


@known(np.ravel, "flatten")
def ravel(x: Any, order: str = "C") -> Node:
    x = as_node(x)
    if in_columns(order):
        x = applied(np.transpose, x)
    return build("reshape", x, shape=(product(x.shape),))


def _turning(name: str) -> Callable[..., Node]:
    """The signature of a function that turns axes."""

    def signature(x: Any, *settings: Any, **named: Any) -> Node:
        x, keywords = as_node(x), {key: constant(each) for key, each in named.items()}
        return build("transpose", x, axes=ORDERS[name](x.ndim, *constant(settings), **keywords))

    found = (getattr(home, name) for home in (np, np.linalg) if hasattr(home, name))
    return known(*found)(signature)


_signatures = {name: _turning(name) for name in ORDERS}
moveaxis, swapaxes = _signatures["moveaxis"], _signatures["swapaxes"]


@known(np.expand_dims)
def expand_dims(x: Any, axis: Any) -> Node:
    x = as_node(x)
    axis = constant(axis)
    rank = x.ndim + (len(axis) if isinstance(axis, tuple | list) else 1)
    axes = axes_of(axis, rank)
    rest = iter(x.shape)
    return build("reshape", x, shape=tuple(ONE if i in axes else next(rest) for i in range(rank)))


@known(np.squeeze)
def squeeze(x: Any, axis: Any = None) -> Node:
    x = as_node(x)
    axes = (
        tuple(i for i, s in enumerate(x.shape) if s == ONE)
        if axis is None
        else axes_of(constant(axis), x.ndim)
    )
    if any(world().length(x.shape[i]) != 1 for i in axes):
        raise ValueError("an axis longer than one cannot be squeezed")
    return build("reshape", x, shape=tuple(s for i, s in enumerate(x.shape) if i not in axes))


def _atleast(rank: int, reshaped: Any) -> Any:
    def signature(*arrays: Any) -> Any:
        nodes = [as_node(x) if isinstance(x, Node) else as_node(np.asarray(x)) for x in arrays]
        out = [n if n.ndim >= rank else build("reshape", n, shape=reshaped(n.shape)) for n in nodes]
        return out[0] if len(out) == 1 else tuple(out)

    return signature


known(np.atleast_1d)(_atleast(1, lambda shape: (ONE,)))
known(np.atleast_2d)(_atleast(2, lambda shape: (ONE, *(shape or (ONE,)))))
known(np.atleast_3d)(
    _atleast(
        3,
        lambda shape: (*shape, ONE) if len(shape) == 2 else (ONE, *(shape or (ONE,)), ONE),
    )
)


@known(np.broadcast_to)
def broadcast_to(x: Any, shape: Any, subok: bool = False) -> Node:
    return spread(as_node(x), sizes(shape))


@known(np.broadcast_arrays)
def broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple[Node, ...]:
    nodes = list(map(as_node, arrays))
    shape = broadcast(*nodes)[0]
    return tuple(spread(n, shape) for n in nodes)


@known(np.flip)
def flip(x: Any, axis: Any = None) -> Node:
    x = as_node(x)
    return build("flip", x, axis=axes_of(constant(axis), x.ndim))


@known(np.flipud)
def flipud(x: Any) -> Node:
    return flip(x, 0)


@known(np.fliplr)
def fliplr(x: Any) -> Node:
    return flip(x, 1)


@known(np.rot90)
def rot90(x: Any, k: Any = 1, axes: Any = (0, 1)) -> Node:
    """Quarter turns in the plane of two axes, from the first to the second."""
    x = as_node(x)
    a, b = (axis_of(i, x.ndim) for i in constant(axes))
    turns = int(constant(k)) % 4
    if turns == 0:
        return as_node(x)
    if turns == 2:
        return flip(x, (a, b))
    return swapaxes(flip(x, b), a, b) if turns == 1 else flip(swapaxes(x, a, b), b)


@known(np.roll)
def roll(x: Any, shift: Any, axis: Any = None) -> Node:
    x = as_node(x)
    if axis is None:
        return build("reshape", roll(ravel(x), shift, 0), shape=x.shape)
    axes = [axis_of(a, x.ndim) for a in np.atleast_1d(constant(axis))]
    shifts = sizes(shift)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    return build("roll", x, shift=shifts, axis=tuple(axes))
