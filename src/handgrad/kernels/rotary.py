"""Kernel of `ops.rotary`: both halves of a row in one sweep, heads read and written as views."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.geometry.positions import angles
from handgrad.kernels import native
from handgrad.kernels.memory import empty_as, output_buffer
from handgrad.kernels.spec import ROWS, KernelSpec

assert native is not None
_rotary = native.rotary


class Cache(NamedTuple):
    """The cosine and sine of every angle."""

    cos: Array
    sin: Array


@lru_cache(maxsize=16)
def _tables(
    length: int,
    features: int,
    offset: int,
    base: float,
    frequencies: tuple[float, ...] | None,
    dtype: Any,
) -> Cache:
    """The tables, equal for every layer and step, so computed once and read-only."""
    theta = angles(length, features, offset=offset, base=base, frequencies=frequencies)
    tables = Cache(np.cos(theta).astype(dtype), np.sin(theta).astype(dtype))
    for table in tables:
        table.flags.writeable = False
    return tables


def _four_axes(x: Array) -> Array:
    """(..., T, d) as (N, H, T, d), a view where that can be."""
    return x if x.ndim == 4 else x.reshape(1, -1, *x.shape[-2:])


def _turned(x: Array, cache: Cache, y: Array, back: bool) -> Array:
    if x.size:
        _rotary(_four_axes(x), cache.cos, cache.sin, _four_axes(y), back)
    return y


def _empty(x: Array) -> Array:
    return empty_as(x if x.ndim == 4 else np.empty(0, x.dtype), x.shape)


def forward(
    x: Array,
    *,
    offset: int = 0,
    base: float = 10000.0,
    frequencies: tuple[float, ...] | None = None,
) -> tuple[Array, Cache]:
    # The tables are shared by all calls, so that each has views, whose shape its user may change.
    tables = _tables(*x.shape[-2:], offset, base, frequencies, x.dtype)
    cache = Cache(*(table.view() for table in tables))
    return _turned(x, cache, _empty(x), False), cache


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    wanted = None if out is None else out[0]
    dx = _empty(dy) if wanted is None else output_buffer(wanted, dy)
    return None if dx is None else _turned(dy, cache, dx, True)


SPEC: Final = KernelSpec("rotary", forward, backward, layout=ROWS, capturable=True)
