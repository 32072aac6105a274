"""Tensors made from sizes, and from other tensors' shapes."""

from __future__ import annotations

import math
from typing import Any

from handgrad.program.special import traced_array
from handgrad.program.tensors.table import one_tuple, torch_function, torch_method, xp


def kind(dtype: Any, otherwise: Any = float) -> Any:
    return otherwise if dtype is None else dtype


@torch_function("zeros", "empty")
def zeros(*size: Any, dtype: Any = None, **_: Any) -> Any:
    return xp.zeros(one_tuple(size), dtype=kind(dtype))


@torch_function()
def ones(*size: Any, dtype: Any = None, **_: Any) -> Any:
    return xp.ones(one_tuple(size), dtype=kind(dtype))


@torch_function()
def full(size: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    return xp.full(size, fill_value, dtype=dtype)


@torch_function()
def eye(n: Any, m: Any = None, *, dtype: Any = None, **_: Any) -> Any:
    return xp.eye(n, m, dtype=kind(dtype))


@torch_function()
def arange(*ends: Any, dtype: Any = None, device: Any = None, **named: Any) -> Any:
    first = () if ends or "end" not in named else (named.get("start", 0),)
    ends = (*first, *ends, *(named[each] for each in ("end", "step") if each in named))
    made = xp.arange(*ends)
    return made if dtype is None else made.astype(dtype)


@torch_function()
def linspace(start: Any, end: Any, steps: Any, **_: Any) -> Any:
    return xp.linspace(start, end, steps)


@torch_function()
def logspace(start: Any, end: Any, steps: Any, base: Any = 10.0, **_: Any) -> Any:
    return base ** xp.linspace(start, end, steps)


@torch_function()
def tril_indices(row: Any, col: Any, offset: int = 0, **_: Any) -> Any:
    return xp.stack(xp.tril_indices(row, offset, col))


@torch_function()
def triu_indices(row: Any, col: Any, offset: int = 0, **_: Any) -> Any:
    return xp.stack(xp.triu_indices(row, offset, col))


@torch_function()
def hann_window(window_length: Any, periodic: bool = True, **_: Any) -> Any:
    return hamming_window(window_length, periodic, 0.5, 0.5)


@torch_function()
def hamming_window(
    window_length: Any, periodic: bool = True, alpha: Any = 0.54, beta: Any = 0.46, **_: Any
) -> Any:
    last = window_length if periodic else window_length - 1
    return alpha - beta * xp.cos(2 * math.pi * xp.arange(window_length) / last)


@torch_function("zeros_like", "empty_like")
def zeros_like(x: Any, *, dtype: Any = None, **_: Any) -> Any:
    return xp.zeros_like(x, dtype=dtype)


@torch_function()
def ones_like(x: Any, *, dtype: Any = None, **_: Any) -> Any:
    return xp.ones_like(x, dtype=dtype)


@torch_function()
def full_like(x: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    return xp.full_like(x, fill_value, dtype=dtype)


@torch_function("tensor", "as_tensor", "asarray", "from_numpy", "scalar_tensor")
def tensor(data: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """A traced array, of numbers as well: it has to have the methods of tensors."""
    made = traced_array(xp.array(data) if isinstance(data, list | tuple) else data)
    return made if dtype is None else made.astype(dtype)


@torch_method("new_zeros", "new_empty")
def new_zeros(x: Any, *size: Any, dtype: Any = None, **_: Any) -> Any:
    return xp.zeros(one_tuple(size), dtype=kind(dtype, x.dtype))


@torch_method()
def new_ones(x: Any, *size: Any, dtype: Any = None, **_: Any) -> Any:
    return xp.ones(one_tuple(size), dtype=kind(dtype, x.dtype))


@torch_method()
def new_full(x: Any, size: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    return xp.full(size, fill_value, dtype=kind(dtype, x.dtype))


@torch_method()
def new_tensor(x: Any, data: Any, *, dtype: Any = None, **_: Any) -> Any:
    return tensor(data, kind(dtype, x.dtype))
