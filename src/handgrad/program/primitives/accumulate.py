"""Running reductions, and the linear recurrence that is the derivative of some: a record each.

Their attribute is `axis`, a number from 0.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.program.node import PRIMITIVES, Node, Primitive, as_node, build
from handgrad.program.primitives.analytic import finite_below
from handgrad.program.primitives.axes import axis_of, broadcast, product
from handgrad.program.primitives.fixed import constant
from handgrad.program.primitives.index import Slot, section
from handgrad.program.primitives.pointwise import cast
from handgrad.program.primitives.rearrange import moveaxis
from handgrad.program.primitives.reduce import (
    before,
    boxes,
    edge,
    flipped,
    part,
    shifted,
)
from handgrad.program.primitives.table import FUNCTIONS, applied, helper, known, refuse
from handgrad.program.sizes import ONE, Size

Array = NDArray[Any]
ZERO = Size.of(0)
RUNS = ({"axis": 0}, {"axis": 2})


def along(name: str) -> Any:
    """A call with the axis second, which NumPy and JAX have by position and PyTorch as dim."""
    return lambda e, n: f"{name}({e.arg(n.args[0])}, {n.attrs['axis'] - n.args[0].ndim})"


def backwards(f: Any, g: Node, axis: int) -> Node:
    """A running function from the last to the first."""
    return flipped(f(flipped(g, axis)), axis)


PRIMITIVES["cumsum"] = Primitive(
    name="cumsum",
    evaluate=np.cumsum,
    shape=lambda x, axis: (x.shape, x.kind.replace("b", "i")),
    vjp=lambda g, y, x, axis: (backwards(lambda r: build("cumsum", r, axis=axis), g, axis),),
    text=along("np.cumsum"),
    torch=along("torch.cumsum"),
    jax=along("jnp.cumsum"),
    domain=boxes,
    analytic=True,
    cases=RUNS,
)


@helper()
def recurrence(a: Any, b: Any, axis: int) -> Any:
    """h with h[k] = a[k] h[k − 1] + b[k] along an axis."""
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    h = [*b[:1]]
    for k in range(1, len(b)):
        h.append(a[k] * h[-1] + b[k])
    return np.moveaxis(np.stack(h), 0, axis) if h else np.moveaxis(b, 0, axis)


def recurrence_vjp(g: Node, y: Node, a: Node, b: Node, axis: int) -> tuple[Node, Node]:
    """The adjoint is a recurrence from the last to the first: r[k] = g[k] + a[k + 1] r[k + 1]."""
    r = adjoint(g, a, axis)
    return r * shifted(y, axis, edge(y, axis, "zeros")), r


def adjoint(g: Node, a: Node, axis: int) -> Node:
    """The r with r[k] = g[k] + a[k + 1] r[k + 1]."""
    upward = shifted(flipped(a, axis), axis, edge(a, axis, "ones"))
    return flipped(build("recurrence", upward, flipped(g, axis), axis=axis), axis)


def two_boxes(rng: np.random.Generator) -> list[Array]:
    """Two arrays of the same lengths."""
    (a,) = boxes(rng)
    return [a, rng.standard_normal(a.shape)]


PRIMITIVES["recurrence"] = Primitive(
    name="recurrence",
    evaluate=recurrence,
    shape=lambda a, b, axis: broadcast(a, b),
    vjp=recurrence_vjp,
    text=lambda e, n: e.call("recurrence", n.args, axis=n.attrs["axis"]),
    domain=two_boxes,
    cases=RUNS,
)
PRIMITIVES["cumprod"] = Primitive(
    name="cumprod",
    evaluate=np.cumprod,
    shape=lambda x, axis: (x.shape, x.kind.replace("b", "i")),
    vjp=lambda g, y, x, axis: (before(x, axis) * adjoint(g, x, axis),),
    text=along("np.cumprod"),
    torch=along("torch.cumprod"),
    jax=along("jnp.cumprod"),
    domain=boxes,
    cases=RUNS,
)


def cumlogsumexp_vjp(g: Node, y: Node, x: Node, axis: int) -> tuple[Node]:
    """Σ g[j] exp(x[k] − y[j]) over j ≥ k, by factors exp(y[k] − y[k + 1]) that are at most 1."""
    y = finite_below(y)
    rise = build("exp", shifted(y, axis, part(y, axis, None, ONE)) - y)
    return (adjoint(g, rise, axis) * build("exp", x - y),)


PRIMITIVES["cumlogsumexp"] = Primitive(
    name="cumlogsumexp",
    evaluate=np.logaddexp.accumulate,
    shape=lambda x, axis: (x.shape, "f"),
    vjp=cumlogsumexp_vjp,
    text=along("np.logaddexp.accumulate"),
    torch=along("torch.logcumsumexp"),
    jax=lambda e, n: f"jax.lax.cumlogsumexp({e.arg(n.args[0])}, axis={n.attrs['axis']})",
    domain=boxes,
    cases=RUNS,
)


# A running extreme is a selection: values stand where the extreme was met last.
@helper()
def last_extreme(x: Any, axis: int, largest: bool) -> Any:
    """Of each element along an axis: where the extreme up to it was met last."""
    best = (np.maximum if largest else np.minimum).accumulate(x, axis)
    places = np.arange(x.shape[axis]).reshape([-1] + [1] * (x.ndim - 1 - axis))
    return np.maximum.accumulate(np.where(x == best, places, 0), axis)


PRIMITIVES["last_extreme"] = Primitive(
    name="last_extreme",
    evaluate=last_extreme,
    shape=lambda x, axis, largest: (x.shape, "i"),
    vjp=lambda g, y, x, axis, largest: (None,),
    text=lambda e, n: e.call("last_extreme", n.args, **n.attrs),
    torch=lambda e, n: (
        f"torch.{'cummax' if n.attrs['largest'] else 'cummin'}"
        f"({e.arg(n.args[0])}, {n.attrs['axis']})[1]"
    ),
    domain=boxes,
    cases=({"axis": 0, "largest": True}, {"axis": 2, "largest": False}),
)


# NumPy's signatures.
def line_of(x: Any, axis: Any, dtype: Any, out: Any) -> tuple[Node, int]:
    """The operand of a running reduction and its axis; the raveled array where none is named."""
    if out is not None:
        refuse("a running reduction with out= is not known", "the result to a name")
    x = cast(as_node(x), dtype)
    if axis is None:
        return build("reshape", x, shape=(product(x.shape),)), 0
    return x, axis_of(axis, x.ndim)


def run(name: str, start: str) -> None:
    """Registers a running sum or product in NumPy's three spellings."""
    ufunc = {"cumsum": np.add, "cumprod": np.multiply}[name]

    @known(getattr(np, name))
    def signature(x: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Node:
        x, axis = line_of(x, axis, dtype, out)
        return build(name, x, axis=axis)

    @known((ufunc, "accumulate"))
    def accumulate(x: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Node:
        return signature(x, axis, dtype, out)

    def cumulative(
        x: Any,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Node:
        x, axis = line_of(x, 0 if axis is None else axis, dtype, out)
        y = build(name, x, axis=axis)
        return build("concatenate", edge(x, axis, start), y, axis=axis) if include_initial else y

    if twin := getattr(np, name.replace("cum", "cumulative_"), None):  # NumPy 2.1 and later
        FUNCTIONS[twin] = cumulative


run("cumsum", "zeros")
run("cumprod", "ones")


def running_extreme(largest: bool) -> Any:
    """NumPy's maximum.accumulate and minimum.accumulate."""

    def signature(x: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Node:
        x, axis = line_of(x, axis, dtype, out)
        index = build("last_extreme", x, axis=axis, largest=largest)
        return applied(np.take_along_axis, x, index, axis)

    return signature


@known((np.add, "reduceat"))
def sums_at(x: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Node:
    """Sums from each place to the next, the last to the end."""
    x, axis = line_of(x, axis, dtype, out)
    lines, starts = moveaxis(x, axis, 0), as_node(indices)
    count = starts.shape[0]
    sides = section(starts, 0, ZERO, count - 1), section(starts, 0, ONE, count)
    rising = build("all", build("less", *sides), axis=(0,), keepdims=False)
    if not constant(rising):
        refuse("np.add.reduceat at places that do not rise is not known")
    place = build("searchsorted", starts, build("arange", size=lines.shape[0]), side="right")
    zeros = build("zeros", shape=(count + 1, *lines.shape[1:]))
    sums = build("add_at", zeros, lines, place, index=(Slot(0),))
    return moveaxis(section(sums, 0, ONE, count + 1), 0, axis)


FUNCTIONS[np.maximum, "accumulate"] = running_extreme(largest=True)
FUNCTIONS[np.minimum, "accumulate"] = running_extreme(largest=False)


@known((np.logaddexp, "accumulate"))
def cumlogsumexp(x: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Node:
    """The logarithm of running sums of exponentials."""
    x, axis = line_of(x, axis, dtype, out)
    return build("cumlogsumexp", x, axis=axis)
