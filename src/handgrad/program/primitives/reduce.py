"""Reductions and running reductions: a record each, with NumPy's signatures.

The attributes are `axis`, a sorted tuple of numbers from 0, and `keepdims`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.program.node import PRIMITIVES, Node, Primitive, as_node, build
from handgrad.program.primitives.axes import (
    Shape,
    axes_of,
    axis_of,
    product,
    reduced,
    spread,
)
from handgrad.program.primitives.pointwise import cast, normal
from handgrad.program.primitives.table import FUNCTIONS, Spelling, known, refuse
from handgrad.program.sizes import ONE, Size

Array = NDArray[Any]
AXES = (
    {"axis": (0,), "keepdims": True},
    {"axis": (1,), "keepdims": False},
    {"axis": (0, 2), "keepdims": False},
    {"axis": (0, 1, 2), "keepdims": True},
)


def boxes(rng: np.random.Generator) -> list[Array]:
    """An array of three axes, of other lengths each time."""
    return [normal(rng, tuple(map(int, rng.permutation((3, 2, 4)))))]


def written(axis: tuple[int, ...], ndim: int, *, all_too: bool = False) -> str:
    """Axes in a call: none for all, unless asked for; counted from the end where it is one."""
    if axis == tuple(range(ndim)) and not all_too:
        return ""
    return str(axis[0] - ndim if len(axis) == 1 else axis)


def method(name: str, keep: str = "keepdims", *, of_floats: bool = False) -> Spelling:
    """The spelling of a reduction as a method: x.sum(-1, keepdims=True).

    PyTorch, which says keepdim, keeps no axes where none is named, and has some of floats alone;
    JAX makes single floats of truths there.
    """

    def text(e: Any, n: Node) -> str:
        x, kept = n.args[0], n.attrs["keepdims"]
        axis = written(n.attrs["axis"], x.ndim, all_too=kept and keep == "keepdim")
        inside = axis, f"{keep}=True" if kept else ""
        operand = e.as_float(x) if of_floats and x.kind not in "fc" else e.arg(x, 8)
        return f"{operand}.{name}({', '.join(filter(None, inside))})"

    return text


def reduction(
    name: str,
    function: Callable[..., Any],
    vjp: Callable[..., tuple[Node | None, ...]],
    *,
    kind: str = "",
    torch: Spelling = "",
    jax: Spelling = "",
    smooth: bool = True,
    draw: Callable[[np.random.Generator], list[Array]] = boxes,
) -> None:
    """Adds a record; the kind is the operand's, truths being counted, where none is given."""

    def shape(x: Node, axis: tuple[int, ...], keepdims: bool) -> tuple[Shape, str]:
        own = x.kind.replace("b", "i") if not kind or (kind, x.kind) == ("f", "c") else kind
        return reduced(x, axis, keepdims), own

    PRIMITIVES[name] = Primitive(
        name=name,
        evaluate=function,
        shape=shape,
        vjp=vjp,
        text=method(name),
        torch=torch or method(name, "keepdim"),
        jax=jax or method(name),
        domain=draw,
        rewrite=lambda x, axis, keepdims: x if not axis and x.kind != "b" else None,
        analytic=True,
        cases=AXES,
        smooth=smooth,
    )


# Sums, means, products.
reduction("sum", np.sum, lambda g, y, x, axis, keepdims: (spread(g, x, axis),))
reduction(
    "mean",
    np.mean,
    lambda g, y, x, axis, keepdims: (
        spread(g / as_node(product(x.shape[a] for a in axis)), x, axis),
    ),
    kind="f",
    torch=method("mean", "keepdim", of_floats=True),
    jax=method("mean", of_floats=True),
)


def products_in_turn(e: Any, n: Node) -> str:
    """PyTorch multiplies along one axis at a time."""
    x, axis, keep = n.args[0], n.attrs["axis"], n.attrs["keepdims"]
    if axis == tuple(range(x.ndim)) and not keep:
        return f"{e.arg(x, 8)}.prod()"
    calls = (f".prod({a}{', keepdim=True' if keep else ''})" for a in reversed(axis))
    return f"{e.arg(x, 8)}{''.join(calls)}"


def product_vjp(g: Node, y: Node, x: Node, axis: tuple[int, ...], keepdims: bool) -> tuple[Node]:
    """The product of all others, of those before and those after: right where some are 0."""
    flat, back = flattened(x, axis)
    last = flat.ndim - 1
    others = before(flat, last) * flipped(before(flipped(flat, last), last), last)
    return (spread(g, x, axis) * back(others),)


def flattened(x: Node, axis: tuple[int, ...]) -> tuple[Node, Callable[[Node], Node]]:
    """The array with some axes as one, the last; and the way back."""
    rest = [i for i in range(x.ndim) if i not in axis]
    order = (*rest, *axis)
    moved = build("transpose", x, axes=order)
    shape = (*(x.shape[i] for i in rest), product(x.shape[i] for i in axis))

    def back(y: Node) -> Node:
        y = build("reshape", y, shape=moved.shape)
        return build("transpose", y, axes=tuple(map(int, np.argsort(order))))

    return build("reshape", moved, shape=shape), back


def flipped(x: Node, axis: int) -> Node:
    """The array from last to first along an axis."""
    return build("flip", x, axis=(axis,))


def shifted(x: Node, axis: int, first: Node) -> Node:
    """`first`, then all but the last."""
    return build("concatenate", first, part(x, axis, None, Size.of(-1)), axis=axis)


def part(x: Node, axis: int, start: Size | None, stop: Size | None) -> Node:
    """A slice along one axis."""
    return build("getitem", x, index=(slice(None),) * axis + (slice(start, stop, None),))


def edge(x: Node, axis: int, name: str) -> Node:
    """Zeros or ones of the length 1 along an axis."""
    return build(name, shape=tuple(ONE if i == axis else s for i, s in enumerate(x.shape)))


def before(x: Node, axis: int) -> Node:
    """The product of all elements before each."""
    return shifted(build("cumprod", x, axis=axis), axis, edge(x, axis, "ones"))


reduction("prod", np.prod, product_vjp, torch=products_in_turn)


# Extremes.
PRIMITIVES["like"] = Primitive(
    name="like",
    evaluate=lambda c, x: np.asarray(c).astype(np.asarray(x).dtype),
    shape=lambda c, x: (c.shape, x.kind),
    vjp=lambda g, y, c, x: (build("like", g, c) if c.kind == "f" else None, None),
    text=lambda e, n: f"{e.arg(n.args[0], 8)}.astype({e.arg(n.args[1], 8)}.dtype)",
    torch=lambda e, n: f"{e.arg(n.args[0], 8)}.to({e.arg(n.args[1], 8)}.dtype)",
    domain=lambda rng: [rng.random((3, 2)) < 0.5, rng.standard_normal(2)],
)


def extreme_vjp(g: Node, y: Node, x: Node, axis: tuple[int, ...], keepdims: bool) -> tuple[Node]:
    """Equal extremes share the gradient, as PyTorch's amax does."""
    chosen = build("equal", x, build("reshape", y, shape=reduced(x, axis, keepdims=True)))
    chosen = build("like", chosen, y)
    return (spread(g, x, axis) * chosen / build("sum", chosen, axis=axis, keepdims=True),)


def nothing(g: Node, y: Node, x: Node, **_: Any) -> tuple[None]:
    """No derivative but 0."""
    return (None,)


reduction("max", np.max, extreme_vjp, torch=method("amax", "keepdim"))
reduction("min", np.min, extreme_vjp, torch=method("amin", "keepdim"))
reduction("any", np.any, nothing, kind="b")
reduction("all", np.all, nothing, kind="b")

for _name, _function in (("argmax", np.argmax), ("argmin", np.argmin)):
    PRIMITIVES[_name] = Primitive(
        name=_name,
        evaluate=_function,
        shape=lambda x, axis: (reduced(x, (axis,), keepdims=False), "i"),
        vjp=nothing,
        text=lambda e, n: f"{e.arg(n.args[0], 8)}.{n.op}({n.attrs['axis'] - n.args[0].ndim})",
        domain=boxes,
        cases=({"axis": 1}, {"axis": 2}),
    )


# NumPy's signatures.
def in_kind(x: Any, dtype: Any, out: Any = None) -> Node:
    """The operand of a reduction in the kind of number asked for."""
    if out is not None:
        refuse("a reduction with out= is not known", "the result to a name")
    return cast(as_node(x), dtype)


def whole(x: Node, axis: Any) -> tuple[int, ...]:
    """The axes that a call names."""
    return axes_of(axis, x.ndim)


# What masked elements are: of no effect on the result.
NEUTRAL = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf, "any": False, "all": True}
JOINED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def called(name: str) -> Callable[..., Node]:
    """NumPy's signature of a reduction."""

    def signature(
        x: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        x = in_kind(x, dtype, out)
        if where is not True and where is not None:  # JAX has None for all
            neutral = NEUTRAL[name] if x.kind == "f" or name in ("any", "all") else None
            if neutral is None:
                refuse(f"np.{name} of integers with where= is not known", "np.where")
            x = build("where", where, x, neutral)
        y = build(name, x, axis=whole(x, axis), keepdims=bool(keepdims))
        return y if initial is None else build(JOINED[name], y, initial)

    return signature


FUNCTIONS |= {
    np.sum: called("sum"),
    np.prod: called("prod"),
    np.any: called("any"),
    np.all: called("all"),
}


def extreme_call(name: str) -> Callable[..., Node]:
    """NumPy's signature of max and min, which has no dtype."""
    inner = called(name)

    def signature(
        x: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        return inner(x, axis, None, out, keepdims, initial, where)

    return signature


FUNCTIONS |= dict.fromkeys((np.max, np.amax), extreme_call("max"))
FUNCTIONS |= dict.fromkeys((np.min, np.amin), extreme_call("min"))


@known(np.argmax)
def argmax(x: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Node:
    """The index of the first largest."""
    return index_of("argmax", in_kind(x, None, out), axis, keepdims)


@known(np.argmin)
def argmin(x: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Node:
    """The index of the first smallest."""
    return index_of("argmin", in_kind(x, None, out), axis, keepdims)


def index_of(name: str, x: Node, axis: Any, keepdims: bool) -> Node:
    """The index of an extreme, in the raveled array where no axis is named."""
    kept = reduced(x, whole(x, axis), keepdims=True)
    if axis is None:
        x, axis = build("reshape", x, shape=(product(x.shape),)), 0
    y = build(name, x, axis=axis_of(axis, x.ndim))
    return build("reshape", y, shape=kept) if keepdims else y


@known(np.count_nonzero)
def count_nonzero(x: Any, axis: Any = None, *, keepdims: bool = False) -> Node:
    """A count, which is an integer."""
    x = build("not_equal", x, 0)
    return build("sum", x, axis=whole(x, axis), keepdims=keepdims)
