"""Kernel of `ops.embedding`: rows are copied, and added where they came from; no one-hot matrix."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from handgrad.arrays import Array
from handgrad.kernels import native
from handgrad.kernels.memory import empty, indices, output_buffer
from handgrad.kernels.spec import KernelSpec

assert native is not None
_forward, _backward = native.embedding_forward, native.embedding_backward


class Cache(NamedTuple):
    """The tokens, and the shape of the table; the gradient does not need its values."""

    tokens: Array
    shape: tuple[int, ...]
    padding: int


def forward(tokens: Array, weight: Array, *, padding_idx: int | None = None) -> tuple[Array, Cache]:
    tokens = indices(tokens)
    y = empty((*tokens.shape, weight.shape[1]), weight.dtype)
    _forward(tokens, weight, y)
    padding = -1 if padding_idx is None else padding_idx % weight.shape[0]
    return y, Cache(tokens, weight.shape, padding)


def backward(dy: Array, cache: Cache, out: Any = None) -> Array | None:
    tokens, shape, padding = cache
    dweight = output_buffer(None if out is None else out[0], dy, shape)
    if dweight is not None:
        _backward(dy, tokens, dweight, padding, False)
    return dweight


def add_gradient(dy: Array, cache: Cache, dweight: Array) -> None:
    """Add the gradient to `dweight`; only the rows of tokens that occur are touched."""
    _backward(dy, cache.tokens, dweight, cache.padding, True)


SPEC: Final = KernelSpec("embedding", forward, backward, capturable=True)
