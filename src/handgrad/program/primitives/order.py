"""Order: indices by size as records; sorted arrays, medians, quantiles are selections by them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.program.node import PRIMITIVES, Node, Primitive, as_node, build
from handgrad.program.primitives.axes import Shape, axes_of, axis_of, product, reduced
from handgrad.program.primitives.reduce import boxes, flattened, nothing
from handgrad.program.primitives.table import FUNCTIONS, known, refuse, refused
from handgrad.program.sizes import Size


def same_integers(x: Node, **_: Any) -> tuple[Shape, str]:
    """An index for each element."""
    return x.shape, "i"


PRIMITIVES["argsort"] = Primitive(
    name="argsort",
    evaluate=lambda x, axis: np.argsort(x, axis, kind="stable"),
    shape=same_integers,
    vjp=nothing,
    text=lambda e, n: f"np.argsort({e.arg(n.args[0])}, {n.attrs['axis']}, kind='stable')",
    torch=lambda e, n: f"torch.argsort({e.arg(n.args[0])}, dim={n.attrs['axis']}, stable=True)",
    jax=lambda e, n: f"jnp.argsort({e.arg(n.args[0])}, axis={n.attrs['axis']}, stable=True)",
    domain=boxes,
    cases=({"axis": 0}, {"axis": 2}),
)
PRIMITIVES["argpartition"] = Primitive(
    name="argpartition",
    evaluate=lambda x, kth, axis: np.argpartition(x, kth, axis),
    shape=same_integers,
    vjp=nothing,
    text=lambda e, n: (
        f"np.argpartition({e.arg(n.args[0])}, {places(e, n.attrs['kth'])}, {n.attrs['axis']})"
    ),
    torch=lambda e, n: f"torch.argsort({e.arg(n.args[0])}, dim={n.attrs['axis']}, stable=True)",
    jax=lambda e, n: f"jnp.argsort({e.arg(n.args[0])}, axis={n.attrs['axis']}, stable=True)",
    domain=boxes,
    cases=({"kth": Size.of(1), "axis": 0}, {"kth": Size.of(-2), "axis": 2}),
)


def places(e: Any, kth: Any) -> str:
    """One place or several."""
    return str(e.sizes(kth) if isinstance(kth, tuple) else e.size(kth))


def searched(x: Node, values: Node, **_: Any) -> tuple[Shape, str]:
    """A place for each value."""
    return values.shape, "i"


PRIMITIVES["searchsorted"] = Primitive(
    name="searchsorted",
    evaluate=lambda x, values, side: np.searchsorted(x, values, side),
    shape=searched,
    vjp=lambda g, y, x, values, side: (None, None),
    text=lambda e, n: f"np.searchsorted({', '.join(map(e.arg, n.args))}, {n.attrs['side']!r})",
    torch=lambda e, n: (
        f"torch.searchsorted({', '.join(map(e.arg, n.args))}, side={n.attrs['side']!r})"
    ),
    jax=lambda e, n: f"jnp.searchsorted({', '.join(map(e.arg, n.args))}, {n.attrs['side']!r})",
    domain=lambda rng: [np.sort(rng.standard_normal(5)), rng.standard_normal((3, 2))],
    cases=({"side": "left"}, {"side": "right"}),
)


# NumPy's signatures.
def line_of(x: Any, axis: Any) -> tuple[Node, int]:
    """An array and the axis to sort along; the raveled array where none is named."""
    x = as_node(x)
    if axis is None:
        return build("reshape", x, shape=(product(x.shape),)), 0
    return x, axis_of(axis, x.ndim)


@known(np.argsort)
def argsort(x: Any, axis: Any = -1, kind: Any = None, order: Any = None, **_: Any) -> Node:
    """The stable order; equal elements stay as they stand."""
    x, axis = line_of(x, axis)
    return build("argsort", x, axis=axis)


@known(np.sort)
def sort(x: Any, axis: Any = -1, *_: Any, **__: Any) -> Node:
    """The elements in their order."""
    x, axis = line_of(x, axis)
    return FUNCTIONS[np.take_along_axis](x, build("argsort", x, axis=axis), axis)


@known(np.argpartition)
def argpartition(x: Any, kth: Any, axis: Any = -1, *_: Any, **__: Any) -> Node:
    """Indices with those of the k smallest first."""
    x, axis = line_of(x, axis)
    kth = tuple(map(Size.of, kth)) if isinstance(kth, (tuple, list)) else Size.of(kth)
    return build("argpartition", x, kth=kth, axis=axis)


@known(np.partition)
def partition(x: Any, kth: Any, axis: Any = -1, *_: Any, **__: Any) -> Node:
    """The elements with the k smallest first."""
    x, axis = line_of(x, axis)
    return FUNCTIONS[np.take_along_axis](x, argpartition(x, kth, axis), axis)


@known(np.searchsorted)
def searchsorted(x: Any, values: Any, side: str = "left", sorter: Any = None) -> Node:
    """Places of values in a sorted array."""
    if sorter is not None:
        refuse("np.searchsorted with sorter= is not known", "np.searchsorted(x[sorter], values)")
    return build("searchsorted", x, values, side=side)


@known(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Node:
    """The bin of each value, of rising bounds."""
    return build("searchsorted", bins, x, side="left" if right else "right")


def along_one(x: Any, axis: Any) -> tuple[Node, Shape]:
    """An array sorted along its last axis, which stands for those named; the result's kept axes."""
    x = as_node(x)
    axes = axes_of(axis, x.ndim)
    flat, _ = flattened(x, axes)
    return sort(flat), reduced(x, axes, keepdims=True)


def last(x: Node, place: Any) -> Node:
    """One place of the last axis."""
    return build("getitem", x, index=(*(slice(None),) * (x.ndim - 1), Size.of(place)))


@known(np.median)
def median(
    x: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Node:
    """The mean of the places (N − 1) // 2 and N // 2, which are the same where N is odd."""
    ordered, kept = along_one(x, axis)
    n = ordered.shape[-1]
    y = 0.5 * (last(ordered, (n - 1) // 2) + last(ordered, n // 2))
    return build("reshape", y, shape=kept) if keepdims else y


# Of each method: the place among N elements, from 0, of the quantile q.
PLACES: dict[str, Callable[[Node, Node], Node]] = {
    "linear": lambda q, n: q * (n - 1),
    "lower": lambda q, n: build("floor", q * (n - 1)),
    "higher": lambda q, n: build("ceil", q * (n - 1)),
    "nearest": lambda q, n: build("rint", q * (n - 1)),
    "midpoint": lambda q, n: 0.5 * (build("floor", q * (n - 1)) + build("ceil", q * (n - 1))),
    "hazen": lambda q, n: q * n - 0.5,
    "weibull": lambda q, n: q * (n + 1) - 1,
    "median_unbiased": lambda q, n: q * (n + 1 / 3) - 2 / 3,
    "normal_unbiased": lambda q, n: q * (n + 0.25) - 0.625,
}


@known(np.quantile)
def quantile(
    x: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    **_: Any,
) -> Node:
    """Between neighbours in order, by the distance of the place from theirs."""
    if method not in PLACES:
        refuse(f"np.quantile by {method} is not known", "method='linear'")
    ordered, kept = along_one(x, axis)
    q, n = as_node(q), as_node(ordered.shape[-1])
    place = PLACES[method](q, n)
    if method in ("hazen", "weibull", "median_unbiased", "normal_unbiased"):
        place = build("clip", place, 0.0, n - 1)
    below = build("floor", place)
    share = place - below
    low = build("astype", below, kind="i")
    take = FUNCTIONS[np.take]
    a, b = take(ordered, low, -1), take(ordered, build("minimum", low + 1, n - 1), -1)
    y = a + (b - a) * share
    if q.ndim:
        y = FUNCTIONS[np.moveaxis](y, tuple(range(-q.ndim, 0)), tuple(range(q.ndim)))
    return build("reshape", y, shape=(*q.shape, *kept)) if keepdims else y


@known(np.percentile)
def percentile(x: Any, q: Any, *args: Any, **keywords: Any) -> Node:
    """The quantile of q / 100."""
    return quantile(x, as_node(q) / 100, *args, **keywords)


# Refusals.
refused("np.{name} counts, which has no derivative", "the counts as an input", np.histogram)
refused("np.{name} leaves out as many elements as the values say", "a slice", np.trim_zeros)
refused("np.{name} orders complex numbers", "np.sort of the real part", np.sort_complex)
refused("np.{name} of several keys is not known", "np.argsort, last key first", np.lexsort)
refused(
    "np.{name} goes over as many elements as the values say",
    "the same of the elements that are numbers, chosen before",
    *(np.nanmedian, np.nanquantile, np.nanpercentile),
)
refused(
    "np.random.{name} draws other numbers in each call",
    "an input for the numbers, drawn by the caller",
    *(
        getattr(np.random, name)
        for name in np.random.__all__
        if callable(getattr(np.random, name)) and name not in ("RandomState", "Generator")
    ),
    always=True,
)
