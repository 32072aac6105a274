"""The operator `handgrad::attention`: scaled products of queries and keys whose weights are never
stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.ops import attention as attention_op
from handgrad.torch.bridge import Tensors, as_array, as_set_in_torch, as_tensor, differentiable

if kernels.native is not None:  # without, the bridge refuses every call
    from handgrad.kernels.memory import empty, empty_like

_native: Any = kernels.native


def _by_head(x: Array) -> Array:
    """(N, T, heads, d) as (N, heads, T, d)."""
    return x.transpose(0, 2, 1, 3)


def _kept(seed: Tensor | None, shape: tuple[int, ...], p: float) -> Array | None:
    """The weights that dropout leaves, which follow from the seed."""
    if seed is None:
        return None
    drawn = np.random.default_rng(int(seed)).random(dtype=np.float32, out=empty(shape, np.float32))
    return np.greater_equal(drawn, p, out=empty(shape, np.bool_))


def _settings(
    q: Array, k: Array, bias: Array | None, mask: Array | None, keep: Array | None, p: float
) -> tuple[Any, ...]:
    """The arguments of native code between v and `causal`."""
    pairs = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    wide = [None if each is None else np.broadcast_to(each, pairs) for each in (bias, mask)]
    scale = 1.0 if keep is None else 1.0 / (1.0 - p) if p < 1.0 else 0.0
    return (*wide, None, keep, scale, 1.0 / math.sqrt(q.shape[-1]))


def _validate(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    mask: Array | None,
    seed: Array | None,
    p: float,
    causal: bool,
    bf16: bool,
) -> None:
    for name, array in (("q", q), ("k", k), ("v", v)):
        if array.ndim != 4:
            raise ShapeError(
                f"attention: {name} has shape {array.shape}; allowed: (N, T, heads, d)"
            )
    attention_op.validate(
        _by_head(q),
        _by_head(k),
        _by_head(v),
        bias,
        mask=mask,
        causal=causal,
        dropout_p=p,
        rng=np.random.default_rng(0),
    )


def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    seed: Tensor | None,
    p: float,
    causal: bool,
    bf16: bool,
) -> tuple[Tensor, ...]:
    arrays: list[Any] = [as_array(each) for each in (q, k, v)]
    first, keys, _ = arrays
    shape = (first.shape[0], first.shape[2], first.shape[1], keys.shape[1])
    keep = _kept(seed, shape, p)
    o, log_sums = empty((*first.shape[:3], v.shape[3]), first.dtype), empty(shape[:3], first.dtype)
    settings = _settings(first, keys, as_array(bias), as_array(mask), keep, p)
    with as_set_in_torch(bf16):
        _native.attention_forward(
            *map(_by_head, arrays), *settings, causal, 0, _by_head(o), log_sums
        )
    kept = empty(0, np.bool_) if keep is None else keep
    return as_tensor(o), as_tensor(log_sums), as_tensor(kept)


def _backward(
    doutputs: Tensors, inputs: Sequence[Any], outputs: Tensors, wanted: Sequence[bool]
) -> list[Tensor]:
    arrays: list[Any] = [as_array(each) for each in inputs[:3]]
    bias, mask = (as_array(each) for each in inputs[3:5])
    p, causal, bf16 = inputs[6:]
    o, log_sums, kept = (as_array(each) for each in outputs)
    dy: Any = as_array(doutputs[0])
    keep = None if inputs[5] is None else kept
    settings = _settings(arrays[0], arrays[1], bias, mask, keep, p)
    found = [
        empty_like(each) if is_wanted else None
        for each, is_wanted in zip(arrays, wanted, strict=False)
    ]
    with as_set_in_torch(bf16):
        _native.attention_backward(
            _by_head(dy),
            *map(_by_head, arrays),
            *settings,
            causal,
            0,
            _by_head(o),
            log_sums,
            *(None if each is None else _by_head(each) for each in found),
            None,
        )
    return [as_tensor(each) for each in found if each is not None]


def _fake(q: Tensor, k: Tensor, v: Tensor, bias: Any, mask: Any, seed: Any, *_: Any) -> Any:
    batch, queries, heads, _size = q.shape
    pairs = (batch, heads, queries, k.shape[1])
    return (
        q.new_empty(batch, queries, heads, v.shape[3]),
        q.new_empty(batch, heads, queries),
        q.new_empty(0 if seed is None else pairs, dtype=torch.bool),
    )


def _again(
    q: Tensor, k: Tensor, v: Tensor, bias: Any, mask: Any, seed: Any, p: float, causal: bool, _: Any
) -> Tensors:
    scores = torch.einsum("nthd,nshd->nhts", q, k) / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    visible = torch.ones_like(scores, dtype=torch.bool)
    if mask is not None:
        visible = visible & mask
    if causal:
        visible = visible.tril()
    # A query that may look nowhere gives 0, as the kernel does.
    weights = scores.masked_fill(~visible, -torch.inf).softmax(-1).nan_to_num()
    keep = _kept(seed, tuple(scores.shape), p)
    if keep is not None:
        weights = weights * as_tensor(keep) * (1.0 / (1.0 - p) if p < 1.0 else 0.0)
    return (torch.einsum("nhts,nshd->nthd", weights, v),)


attention: Final = differentiable(
    "attention",
    "(Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor? mask, Tensor? seed, float p, "
    "bool causal, bool bf16) -> (Tensor, Tensor, Tensor)",
    validate=_validate,
    forward=_forward,
    backward=_backward,
    fake=_fake,
    again=_again,
    reads=(0, 1, 2),
)
