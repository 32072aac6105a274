"""Kernel of `ops.dense`: bias and activation are applied to each tile as it is finished."""

from __future__ import annotations

from typing import Any, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.activation import code_of, keeps_input
from handgrad.kernels.memory import empty, place

assert native is not None
_forward, _backward = native.dense_forward, native.dense_backward


class Cache(NamedTuple):
    """x and W for the products; `saved` is h, or a where the derivative needs it."""

    x: Array
    weight: Array
    bias: Array | None
    saved: Array
    activation: int
    slope: float


def forward(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    activation: str = "identity",
    negative_slope: float = 0.01,
    approximate: str = "none",
) -> tuple[Array, Cache]:
    code = code_of(activation, approximate)
    y = empty((*x.shape[:-1], weight.shape[0]), x.dtype)
    a = empty(y.shape, y.dtype) if keeps_input(code) else None
    _forward(x, weight, bias, y, a, code, negative_slope)
    return y, Cache(x, weight, bias, y if a is None else a, code, negative_slope)


def backward(
    dh: Array, cache: Cache, out: Any = None
) -> tuple[Array | None, Array | None, Array | None]:
    x, weight, bias, saved, code, slope = cache
    at_x, at_weight, at_bias = out or (None, None, None)
    dx = place(at_x, x)
    dweight = place(at_weight, weight)
    dbias = None if bias is None else place(at_bias, bias)
    _backward(dh, x, weight, saved, dx, dweight, dbias, code, slope)
    return dx, dweight, dbias
