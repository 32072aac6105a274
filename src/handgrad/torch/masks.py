"""Masks of PyTorch's attention as the kernels take them: True where a query may look."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Masks(NamedTuple):
    """A number added to every score, and what may be seen; both broadcast to (N, heads, T, S)."""

    bias: Tensor | None
    mask: Tensor | None


def are_masks(*masks: Any) -> bool:
    """Return whether PyTorch takes these for masks: booleans, or numbers that are added."""
    return all(
        each is None or each.dtype is torch.bool or each.is_floating_point() for each in masks
    )


def masks_of(attn_mask: Any, key_padding_mask: Any, heads: int, dtype: Any) -> Masks:
    """PyTorch's two masks, (T, S) or (N · heads, T, S) and (N, S), as one of each kind."""
    bias, mask = None, None
    if attn_mask is not None:
        if attn_mask.dim() == 3:
            attn_mask = attn_mask.unflatten(0, (-1, heads))
        if attn_mask.dtype == torch.bool:
            mask = ~attn_mask
        else:
            bias = attn_mask.to(dtype)
    if key_padding_mask is not None:
        padding = key_padding_mask[..., None, None, :]
        if padding.dtype == torch.bool:
            mask = ~padding if mask is None else mask & ~padding
        else:
            bias = padding.to(dtype) if bias is None else bias + padding.to(dtype)
    return Masks(bias, mask)
