"""Kernel of `ops.dense`: each tile is finished with bias, activation and what is to be added."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.dispatch import as_residual
from handgrad.kernels import native
from handgrad.kernels.activation import code_of, keeps_input
from handgrad.kernels.memory import empty, empty_like, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.dense_forward, native.dense_backward


class Cache(NamedTuple):
    """x and W for the products; `saved` is h or a, whichever the derivative needs, if any."""

    x: Array
    weight: Array
    bias: Array | None
    saved: Array | None
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
    residual: Array | None = None,
) -> tuple[Array, Cache]:
    code = code_of(activation, approximate)
    y = empty((*x.shape[:-1], weight.shape[0]), x.dtype)
    apart = keeps_input(code) or (residual is not None and activation != "identity")
    saved = empty_like(y) if apart else None
    _forward(x, weight, bias, as_residual(residual, y), y, saved, code, negative_slope)
    if saved is None and activation != "identity":
        saved = y
    return y, Cache(x, weight, bias, saved, code, negative_slope)


def backward(
    dh: Array, cache: Cache, out: Any = None, residual: Array | None = None
) -> tuple[Array | None, Array | None, Array | None]:
    x, weight, bias, saved, code, slope = cache
    at_x, at_weight, at_bias = out or (None, None, None)
    dx = output_buffer(at_x, x)
    dweight = output_buffer(at_weight, weight)
    dbias = None if bias is None else output_buffer(at_bias, bias)
    _backward(dh, x, weight, saved, as_residual(residual, x), dx, dweight, dbias, code, slope)
    return dx, dweight, dbias


SPEC: Final = KernelSpec(
    "dense",
    forward,
    backward,
    adds_residual_forward=True,
    adds_residual_backward=True,
    capturable=True,
)
