"""Spreads, norms, averages, differences: NumPy's signatures in terms of sums and means."""

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build, number
from handgrad.program.primitives.axes import axis_of, product, reduced
from handgrad.program.primitives.pointwise import nonzero
from handgrad.program.primitives.reduce import called, in_kind, part, whole
from handgrad.program.primitives.table import FUNCTIONS, applied, known, refuse
from handgrad.program.sizes import ONE, Size

total, largest, smallest = called("sum"), called("max"), called("min")
mean_of = called("mean")


def count_of(x: Node, axis: tuple[int, ...], keepdims: bool, where: Any) -> Node:
    """The number of elements that a mean goes over."""
    if where is True:
        return as_node(product(x.shape[a] for a in axis))
    counted = build("broadcast_to", where, shape=x.shape)
    return build("sum", counted, axis=axis, keepdims=keepdims)


@known(np.mean)
def mean(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Node:
    """NumPy's mean; over chosen elements by their number."""
    x = in_kind(x, dtype, out)
    if where is True:
        return mean_of(x, axis, keepdims=keepdims)
    chosen = total(x, axis, keepdims=keepdims, where=where)
    return chosen / count_of(x, whole(x, axis), keepdims, where)


@known(np.var)
def var(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Node:
    """The mean square of what is left after the mean, or its sum over N − ddof."""
    node = in_kind(x, dtype, out)
    axes = whole(node, axis)
    ddof = ddof if correction is None else correction
    d = node - (applied(np.mean, node, axes, keepdims=True, where=where) if mean is None else mean)
    if where is True and number(as_node(ddof)) == 0:
        return mean_of(squares(d), axes, keepdims=keepdims)
    y = total(squares(d), axes, keepdims=keepdims, where=where)
    return y / (count_of(node, axes, bool(keepdims), where) - as_node(ddof))


@known(np.std)
def std(x: Any, *args: Any, **keywords: Any) -> Node:
    """The root of the variance; as in PyTorch it has slope 0 where that is 0."""
    return build("sqrt", var(x, *args, **keywords), flat=True)


@known(np.ptp)
def ptp(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Node:
    """The largest less the smallest."""
    x = in_kind(x, None, out)
    return largest(x, axis, keepdims=keepdims) - smallest(x, axis, keepdims=keepdims)


@known(np.average)
def average(
    x: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """The mean by weights, which may be those of one axis."""
    x = as_node(x)
    axes = whole(x, axis)
    if weights is None:
        y, scale = mean_of(x, axes, keepdims=keepdims), count_of(x, axes, keepdims, True)
    else:
        w = as_node(weights)
        if w.ndim < x.ndim:
            given = axis if isinstance(axis, (tuple, list)) else (axis,)
            places = [axis_of(a, x.ndim) for a in given]
            w = build("transpose", w, axes=tuple(map(int, np.argsort(places))))
            sizes = iter(w.shape)
            shape = tuple(next(sizes) if i in places else ONE for i in range(x.ndim))
            w = build("reshape", w, shape=shape)
        scale = total(w, axes, keepdims=keepdims)
        y = total(x * w, axes, keepdims=keepdims) / scale
    return (y, build("broadcast_to", scale, shape=y.shape)) if returned else y


# Norms.
def squares(x: Node) -> Node:
    """|x|² of each element."""
    if x.kind != "c":
        return x**2
    a, b = build("real", x), build("imag", x)
    return a * a + b * b


def length(x: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    """The root of the sum of squares; it has slope 0 at 0."""
    return build("sqrt", total(squares(x), axes, keepdims=keepdims), flat=True)


def vector_norm(x: Node, order: Any, axes: tuple[int, ...], keepdims: bool) -> Node:
    """‖x‖ of any order; as in PyTorch it has slope 0 at 0."""
    p = number(as_node(order))
    if p == 2:
        return length(x, axes, keepdims)
    size = build("abs", x)
    if p == np.inf:
        return largest(size, axes, keepdims=keepdims)
    if p == -np.inf:
        return smallest(size, axes, keepdims=keepdims)
    if p == 0:
        return build("astype", count_nonzero(x, axes, keepdims), kind="f")
    if p == 1:
        return total(size, axes, keepdims=keepdims)
    powers = build("where", build("equal", size, 0), 0.0, nonzero(size) ** order)
    sums = total(powers, axes, keepdims=keepdims)
    return build("where", build("equal", sums, 0), 0.0, nonzero(sums) ** (1 / as_node(order)))


def count_nonzero(x: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    """The number of elements that are not 0."""
    return build("sum", build("not_equal", x, 0), axis=axes, keepdims=keepdims)


def matrix_norm(x: Node, order: Any, axes: tuple[int, ...], keepdims: bool) -> Node:
    """Norms of matrices by sums of sizes; those by singular values are with linear algebra."""
    if order == "fro":
        return length(x, axes, keepdims)
    if order in (1, -1, np.inf, -np.inf):
        row, column = axes
        inner, outer = (row, column) if abs(order) == 1 else (column, row)
        sums = total(build("abs", x), inner, keepdims=True)
        y = (largest if order > 0 else smallest)(sums, outer, keepdims=True)
        return y if keepdims else build("reshape", y, shape=reduced(x, axes, keepdims=False))
    values = FUNCTIONS.get(np.linalg.svdvals)
    if values is None:
        refuse(f"a matrix norm of order {order} is not known", "ord='fro'")
    s = values(FUNCTIONS[np.moveaxis](x, axes, (-2, -1)))
    y = {"nuc": total, 2: largest, -2: smallest}[order](s, -1)
    return build("reshape", y, shape=reduced(x, axes, keepdims=True)) if keepdims else y


@known(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Node:
    """NumPy's norm: of all elements, of vectors along one axis, of matrices along two."""
    x = as_node(x)
    if axis is None and (ord is None or (ord in (2, "fro") and x.ndim == ord_rank(ord))):
        return length(x, whole(x, None), keepdims)
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    axes = tuple(axis_of(a, x.ndim) for a in axes)
    if len(axes) == 1:
        return vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    return matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)


def ord_rank(order: Any) -> int:
    """The rank of an array whose norm of this order is the root of the sum of squares."""
    return 2 if order == "fro" else 1


@known(np.linalg.vector_norm)
def vector_norm_call(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Node:
    """The array API's norm of vectors, over any axes."""
    x = as_node(x)
    return vector_norm(x, ord, whole(x, axis), keepdims)


@known(np.linalg.matrix_norm)
def matrix_norm_call(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Node:
    """The array API's norm of matrices, in the last two axes."""
    x = as_node(x)
    return matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


# Without NaN.
def without_nan(name: str, neutral: float) -> Callable[..., Node]:
    """A reduction that leaves NaN out."""
    inner: Callable[..., Node] = FUNCTIONS[getattr(np, name)]

    def signature(x: Any, axis: Any = None, *args: Any, **keywords: Any) -> Node:
        x = as_node(x)
        return inner(build("where", build("isnan", x), neutral, x), axis, *args, **keywords)

    return signature


FUNCTIONS[np.nansum] = without_nan("sum", 0.0)
FUNCTIONS[np.nanprod] = without_nan("prod", 1.0)
FUNCTIONS[np.nanmax] = without_nan("max", -np.inf)
FUNCTIONS[np.nanmin] = without_nan("min", np.inf)
FUNCTIONS[np.nancumsum] = without_nan("cumsum", 0.0)
FUNCTIONS[np.nancumprod] = without_nan("cumprod", 1.0)


def over_numbers(function: Any) -> Callable[..., Node]:
    """A mean or spread over the elements that are not NaN."""
    inner: Callable[..., Node] = FUNCTIONS[function]

    def signature(x: Any, axis: Any = None, **keywords: Any) -> Node:
        x = as_node(x)
        real = build("logical_not", build("isnan", x))
        return inner(build("where", real, x, 0.0), axis, where=real, **keywords)

    return signature


FUNCTIONS[np.nanmean] = over_numbers(np.mean)
FUNCTIONS[np.nanvar] = over_numbers(np.var)
FUNCTIONS[np.nanstd] = over_numbers(np.std)


@known(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: Any = True,
    bias: Any = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Node:
    """Products of centred variables, which are rows, over N - 1."""
    if fweights is not None or aweights is not None:
        refuse("weights of np.cov are not known", "the weighted products themselves")
    parts = [applied(np.atleast_2d, x) for x in (m, y) if x is not None]
    if not rowvar:
        parts = [x if as_node(m).ndim < 2 else applied(np.transpose, x) for x in parts]
    x = parts[0] if len(parts) == 1 else applied(np.concatenate, parts, 0)
    d = x - applied(np.mean, x, 1, keepdims=True)
    less = (0 if bias else 1) if ddof is None else ddof
    products = applied(np.matmul, d, applied(np.transpose, d))
    return applied(np.squeeze, products) / (as_node(x.shape[1]) - as_node(less))


@known(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, **_: Any) -> Node:
    """Covariances over the deviations of both variables."""
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    deviations = build("sqrt", applied(np.diagonal, c))
    return c / applied(np.outer, deviations, deviations)


@known(*filter(None, (getattr(np, name, None) for name in ("trapezoid", "trapz"))))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Node:
    """The area by trapezoids: half the sum of neighbours times their distance."""
    y = as_node(y)
    axis = axis_of(axis, y.ndim)
    step = as_node(dx)
    if x is not None:
        x = as_node(x)
        step = applied(np.diff, x, axis=axis if x.ndim > 1 else 0)
        if x.ndim == 1:
            shape = tuple(step.shape[0] if i == axis else ONE for i in range(y.ndim))
            step = build("reshape", step, shape=shape)
    neighbours = part(y, axis, ONE, None) + part(y, axis, None, Size.of(-1))
    return total(step * neighbours * 0.5, axis)


# ufunc.reduce goes over the first axis.
def reduce_call(function: Any) -> Callable[..., Node]:
    """The signature of a ufunc's reduce in terms of the reduction."""
    inner: Callable[..., Node] = FUNCTIONS[function]

    def signature(
        x: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        **keywords: Any,
    ) -> Node:
        return inner(in_kind(x, dtype, out), axis, keepdims=keepdims, **keywords)

    return signature


for _ufunc, _function in (
    (np.add, np.sum),
    (np.multiply, np.prod),
    (np.maximum, np.max),
    (np.minimum, np.min),
    (np.logical_and, np.all),
    (np.logical_or, np.any),
):
    FUNCTIONS[_ufunc, "reduce"] = reduce_call(_function)
