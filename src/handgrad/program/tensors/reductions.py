"""Reductions over `dim`, kept with `keepdim`; those that give values and places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from handgrad.program.tensors.table import TENSOR_FUNCTIONS, axes, special, torch_function, xp
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


TENSOR_FUNCTIONS.update({name: _reduction(getattr(xp, own)) for name, own in _SAME.items()})


def _pair(values: Any, indices: Any, dim: int, keepdim: bool) -> Extreme:
    """Values and places, of which the axis of one stays or goes."""
    pair = Extreme(values, indices)
    return pair if keepdim else Extreme(*(xp.squeeze(each, axis=dim) for each in pair))


def _extreme(
    whole: Callable[..., Any], between: Callable[..., Any], place: Callable[..., Any]
) -> Callable[..., Any]:
    """max and min: of all, of two tensors, or along an axis with the places."""

    def extreme(x: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        other = dim if type(dim) is Tracer else other
        if other is not None:
            return between(x, other)
        if dim is None:
            return whole(x)
        found = place(x, axis=dim, keepdims=True)
        return _pair(xp.take_along_axis(x, found, axis=dim), found, dim, keepdim)

    return extreme


TENSOR_FUNCTIONS["max"] = _extreme(xp.max, xp.maximum, xp.argmax)
TENSOR_FUNCTIONS["min"] = _extreme(xp.min, xp.minimum, xp.argmin)


@torch_function()
def argmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return xp.argmax(x, axis=dim, keepdims=keepdim)


@torch_function()
def argmin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return xp.argmin(x, axis=dim, keepdims=keepdim)


@torch_function()
def count_nonzero(x: Any, dim: Any = None) -> Any:
    return xp.count_nonzero(x, axis=axes(dim))


@torch_function()
def var(
    x: Any,
    dim: Any = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    """The variance: divided by n − 1 unless `unbiased` is false."""
    if isinstance(dim, bool):  # x.var(False)
        dim, unbiased = None, dim
    less = int(unbiased) if correction is None else correction
    return xp.var(x, axis=axes(dim), ddof=less, keepdims=keepdim)


@torch_function()
def std(x: Any, *args: Any, **kwargs: Any) -> Any:
    return xp.sqrt(var(x, *args, **kwargs))


@torch_function()
def var_mean(
    x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, **k: Any
) -> Any:
    mean = xp.mean(x, axis=axes(dim), keepdims=keepdim)
    return var(x, dim, unbiased, keepdim, **k), mean


@torch_function()
def std_mean(x: Any, *args: Any, **kwargs: Any) -> Any:
    variance, mean = var_mean(x, *args, **kwargs)
    return xp.sqrt(variance), mean


@torch_function("norm", "linalg.vector_norm")
def norm(
    x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, *, ord: Any = None, **_: Any
) -> Any:
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
    """The lower of two in the middle, as PyTorch has it."""
    if dim is None:
        x, dim = xp.ravel(x), 0
        values = sort(x, 0).values
        return values[(x.shape[0] - 1) // 2]
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
def cdist(a: Any, b: Any, p: Any = 2.0) -> Any:
    return norm(a[..., :, None, :] - b[..., None, :, :], p, -1)


@torch_function()
def trace(x: Any) -> Any:
    return xp.trace(x)
