"""Reductions over `dim`, kept with `keepdim`; those that give values and places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.table import (
    along,
    axes,
    enter,
    held,
    is_exactly,
    special,
    torch_function,
    torch_refused,
    xp,
)
from handgrad.program.tracer import Tracer


class Extreme(NamedTuple):
    """The result of max, min, sort and topk along an axis."""

    values: Any
    indices: Any


_SAME: Final = {
    "sum": "sum",
    "mean": "mean",
    "prod": "prod",
    "amax": "max",
    "amin": "min",
    "all": "all",
    "any": "any",
    "nansum": "nansum",
    "nanmean": "nanmean",
}


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return function(x, axis=axes(dim), keepdims=keepdim)

    return reduced


for _name, _own in _SAME.items():
    enter(_name, _reduction(getattr(xp, _own)))
enter("_is_all_true", lambda x: xp.all(x))
enter("_is_any_true", lambda x: xp.any(x))


def _pair(values: Any, indices: Any, dim: int, keepdim: bool) -> Extreme:
    """Values and places, of which the axis of one stays or goes."""
    pair = Extreme(values, indices)
    return pair if keepdim else Extreme(*(xp.squeeze(each, axis=dim) for each in pair))


def _extreme(
    whole: Callable[..., Any], between: Callable[..., Any], place: Callable[..., Any]
) -> Callable[..., Any]:
    """max and min: of all, of two tensors, or along an axis with the places."""

    def extreme(x: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        """Ties of two and of all are shared; along an axis the first has the gradient."""
        other = dim if type(dim) is Tracer else other
        if other is not None:
            return between(x, other)
        if dim is None:
            return whole(x)
        return _pair(*_first(x, dim, place), dim, keepdim)

    return extreme


def _first(x: Any, dim: int, place: Callable[..., Any]) -> Extreme:
    """The first extreme along an axis, which stays, and its place."""
    found = place(x, axis=dim, keepdims=True)
    return Extreme(xp.take_along_axis(x, found, axis=dim), found)


def first_largest(x: Any, dim: int) -> Extreme:
    return _first(x, dim, xp.argmax)


enter("max", _extreme(xp.max, xp.maximum, xp.argmax))
enter("min", _extreme(xp.min, xp.minimum, xp.argmin))


class Extremes(NamedTuple):
    """The result of aminmax."""

    min: Any
    max: Any


@torch_function()
def aminmax(x: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    return Extremes(*(f(x, axis=dim, keepdims=keepdim) for f in (xp.min, xp.max)))


def _running(reached: Callable[..., Any]) -> Callable[..., Any]:
    """cummax and cummin: of equal elements the last has the gradient."""

    def running(x: Any, dim: int) -> Any:
        extreme = held(reached.accumulate(x, axis=dim))  # type: ignore[attr-defined]
        counted = xp.reshape(
            xp.arange(x.shape[dim]), tuple(-1 if k == dim % x.ndim else 1 for k in range(x.ndim))
        )
        places = xp.where(xp.equal(held(x), extreme), counted, 0)
        places = xp.maximum.accumulate(places, axis=dim)
        return Extreme(xp.take_along_axis(x, places, axis=dim), places)

    return running


enter("cummax", _running(xp.maximum))
enter("cummin", _running(xp.minimum))


@torch_function()
def argmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return xp.argmax(x, axis=dim, keepdims=keepdim)


@torch_function()
def argmin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return xp.argmin(x, axis=dim, keepdims=keepdim)


@torch_function()
def count_nonzero(x: Any, dim: Any = None) -> Any:
    return xp.count_nonzero(x, axis=axes(dim))


def _spread(function: Callable[..., Any], *, with_mean: bool = False) -> Callable[..., Any]:
    """The variance or the deviation, alone or beside the mean."""

    def spread(
        x: Any,
        dim: Any = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Any = None,
    ) -> Any:
        """Divided by n − 1 unless `unbiased` is false; equal elements' deviation has gradient 0."""
        if isinstance(dim, bool):  # x.var(False)
            dim, unbiased = None, dim
        less = int(unbiased) if correction is None else correction
        found = function(x, axis=axes(dim), ddof=less, keepdims=keepdim)
        return (found, xp.mean(x, axis=axes(dim), keepdims=keepdim)) if with_mean else found

    return spread


for _name in ("var", "std"):
    enter(_name, _spread(getattr(xp, _name)))
    enter(f"{_name}_mean", _spread(getattr(xp, _name), with_mean=True))


@torch_function("norm", "linalg.vector_norm")
def norm(
    x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, *, ord: Any = None, **_: Any
) -> Any:
    if p == "nuc":
        return xp.linalg.norm(x, "nuc", axis=axes(dim), keepdims=keepdim)
    p = ord if ord is not None else 2 if p in (None, "fro") else p
    return xp.linalg.vector_norm(x, axis=axes(dim), keepdims=keepdim, ord=p)


@torch_function("linalg.norm")
def linalg_norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    if ord is None:
        return norm(x, 2, dim, keepdim)
    return xp.linalg.norm(x, ord, axis=axes(dim), keepdims=keepdim)


@torch_function()
def logsumexp(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return special.logsumexp(x, axis=axes(dim), keepdims=keepdim)


@torch_function()
def median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower of two in the middle, as PyTorch has it; that of all is shared among equals."""
    if dim is None:
        x = xp.ravel(x)
        equal = held(x) == held(sort(x, 0).values[(x.shape[0] - 1) // 2])
        return xp.sum(xp.where(equal, x, 0.0)) / xp.sum(equal)
    ordered, places = sort(x, dim)
    middle = xp.asarray([(x.shape[dim] - 1) // 2])
    values, indices = (xp.take(each, middle, axis=dim) for each in (ordered, places))
    return _pair(values, indices, dim, keepdim)


@torch_function()
def cumsum(x: Any, dim: int, *, dtype: Any = None) -> Any:
    return xp.cumsum(x, axis=dim)


@torch_function()
def cumprod(x: Any, dim: int, *, dtype: Any = None) -> Any:
    return xp.cumprod(x, axis=dim)


@torch_function()
def logcumsumexp(x: Any, dim: int) -> Any:
    return xp.logaddexp.accumulate(x, axis=dim)


@torch_function()
def diff(x: Any, n: int = 1, dim: int = -1) -> Any:
    return xp.diff(x, n, axis=dim)


@torch_function()
def argsort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    return xp.argsort(-x if descending else x, axis=dim, kind="stable")


@torch_function()
def sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    order = argsort(x, dim, descending)
    return Extreme(xp.take_along_axis(x, order, axis=dim), order)


@torch_function()
def topk(x: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    order = argsort(x, dim, largest)
    first = xp.take(order, xp.arange(k), axis=dim)
    return Extreme(xp.take_along_axis(x, first, axis=dim), first)


@torch_function()
def msort(x: Any) -> Any:
    return sort(x, 0).values


@torch_function()
def kthvalue(x: Any, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    place = xp.asarray([k - 1])
    values, indices = (xp.take(each, place, axis=dim) for each in sort(x, dim))
    return _pair(values, indices, dim, keepdim)


@torch_function()
def quantile(
    x: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:
    return xp.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


@torch_function()
def cdist(x1: Any, x2: Any, p: Any = 2.0, compute_mode: Any = None) -> Any:
    return norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


@torch_function()
def pdist(x: Any, p: Any = 2.0) -> Any:
    """The distances of all pairs of rows, each once."""
    first, second = xp.triu_indices(x.shape[0], 1)
    return norm(x[first] - x[second], p, -1)


@torch_function()
def dist(x: Any, other: Any, p: Any = 2) -> Any:
    return norm(x - other, p)


@torch_function()
def renorm(x: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Slices along an axis, those of a larger norm scaled to that."""
    rest = tuple(k for k in range(x.ndim) if k != dim % x.ndim)
    size = norm(x, p, rest, True)
    return x * xp.where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)


@torch_function()
def cov(x: Any, *, correction: Any = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Of rows of variables."""
    if fweights is not None or aweights is not None:
        refuse("cov with weights is not known; write the weighted mean and product")
    rows = x if x.ndim > 1 else x[None]
    centered = rows - xp.mean(rows, axis=1, keepdims=True)
    made = centered @ xp.transpose(centered) / (rows.shape[1] - correction)
    return made if x.ndim > 1 else made[0, 0]


@torch_function()
def corrcoef(x: Any) -> Any:
    covariance = cov(x)
    deviation = xp.sqrt(xp.diagonal(covariance))
    return covariance / (deviation[:, None] * deviation)


def _trapezia(y: Any, x: Any, dx: Any, dim: int) -> Any:
    means = (along(y, dim, slice(1, None)) + along(y, dim, slice(None, -1))) / 2
    if x is None:
        return means * dx
    if x.ndim < y.ndim:
        x = xp.reshape(x, tuple(-1 if k == dim % y.ndim else 1 for k in range(y.ndim)))
    return means * xp.diff(x, axis=dim)


@torch_function("trapezoid", "trapz")
def trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    return xp.sum(_trapezia(y, x, dx, dim), axis=dim)


@torch_function()
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    return xp.cumsum(_trapezia(y, x, dx, dim), axis=dim)


torch_refused(
    "{name} counts elements, which has no derivative; give its result as an argument",
    *("histogram", "mode", "unique_consecutive", "nanmedian", "nanquantile"),
)


@torch_function()
def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    return xp.bincount(x, weights, minlength)


@torch_function()
def histc(x: Any, bins: Any = 100, min: Any = 0, max: Any = 0) -> Any:
    """The number of elements between edges; those outside are left out."""
    if is_exactly(min, 0) and is_exactly(max, 0):
        min, max = xp.min(x), xp.max(x)
    x = xp.ravel(x)
    place = xp.clip(xp.floor((x - min) * bins / (max - min)), 0, bins - 1)
    inside = ((x >= min) & (x <= max)).astype(float)
    return xp.bincount(place.astype(int), inside, bins)


@torch_function()
def trace(x: Any) -> Any:
    return xp.trace(x)
