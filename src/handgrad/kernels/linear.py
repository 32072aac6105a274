"""Kernel of `ops.linear`: that of `dense` with the identity as its activation."""

from __future__ import annotations

from typing import Any, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import dense


class Cache(NamedTuple):
    """The cache of the dense kernel."""

    dense: dense.Cache


def forward(x: Array, weight: Array, bias: Array | None = None) -> tuple[Array, Cache]:
    y, cache = dense.forward(x, weight, bias)
    return y, Cache(cache)


def backward(
    dy: Array, cache: Cache, out: Any = None
) -> tuple[Array | None, Array | None, Array | None]:
    return dense.backward(dy, cache.dense, out)
