"""PyTorch's MultiheadAttention on handgrad's kernels."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from handgrad.torch import single_ops
from handgrad.torch.alterations import altered_part
from handgrad.torch.attention_op import attention
from handgrad.torch.bridge import hand_over
from handgrad.torch.masks import are_masks, masks_of
from handgrad.torch.modules import Linear
from handgrad.torch.operands import Operands, operands

#: The parts that attention computes without calling them, as PyTorch does too.
ATTENTION_PARTS: Final = {"out_proj": (NonDynamicallyQuantizableLinear, nn.Linear, Linear)}


class MultiheadAttention(nn.MultiheadAttention):  # type: ignore[misc, unused-ignore]
    """`torch.nn.MultiheadAttention` on handgrad's kernels, which never store the weights.

    With need_weights=True, PyTorch's default, PyTorch's own computes. A query that may look nowhere
    attends to nothing, where PyTorch gives NaN. Dropout draws other numbers than PyTorch's, from a
    seed that its generator gives.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        masks = (attn_mask, key_padding_mask)
        reason = self._refusal(masks, need_weights)
        found = None
        if reason is not None:
            hand_over("MultiheadAttention", reason)
        elif are_masks(*masks) and self._fits(query, key, value, attn_mask, is_causal):
            found = operands("MultiheadAttention", query, key, value, *self._weights())
        y = None
        if found is not None:
            attn_mask_of_kernel = None if is_causal else attn_mask
            y = self._attended(found, attn_mask_of_kernel, key_padding_mask, is_causal)
        if found is None or y is None:
            return super().forward(
                query,
                key,
                value,
                key_padding_mask,
                need_weights,
                attn_mask,
                average_attn_weights,
                is_causal,
            )
        return found.result(y), None

    def _weights(self) -> tuple[Tensor | None, ...]:
        """The weights of the four products, then the biases of the first three and of the last."""
        if self._qkv_same_embed_dim:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return (*weights, self.out_proj.weight, self.in_proj_bias, self.out_proj.bias)

    def _refusal(self, masks: tuple[Any, ...], need_weights: bool) -> str | None:
        """Why the operator does not compute what is asked for; None if it does."""
        if need_weights:
            return "need_weights=True asks for the weights, which the kernel does not store"
        if any(mask is not None and mask.requires_grad for mask in masks):
            return "a mask has a gradient"
        return attention_without_kernel(self)

    def _fits(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Any, is_causal: bool
    ) -> bool:
        """Return whether PyTorch would take these arguments."""
        inputs = (query, key, value)
        if any(each.is_nested or each.dim() != query.dim() for each in inputs):
            return False
        sizes = (self.embed_dim, self.kdim, self.vdim)
        right = all(each.shape[-1] == size for each, size in zip(inputs, sizes, strict=True))
        same = key.shape[:-1] == value.shape[:-1] and query.dim() in (2, 3)
        heads, size = self.num_heads, query.shape[-1]
        split = isinstance(heads, int) and heads > 0 and size % heads == 0
        width = 3 * size
        packed, bias = self.in_proj_weight, self.in_proj_bias
        thirds = (packed is None or packed.shape == (width, size)) and (
            bias is None or bias.shape == (width,)
        )
        causal = attn_mask is not None or not is_causal
        return bool(right and same and split and thirds and causal)

    def _attended(
        self, found: Operands, attn_mask: Any, key_padding_mask: Any, causal: bool
    ) -> Tensor | None:
        *tensors, wq, wk, wv, wo, bias, last_bias = found.tensors
        batched = tensors[0].dim() == 3
        inputs = [self._batch_first(each) for each in tensors]
        biases = (None, None, None) if bias is None else bias.chunk(3)
        products = [
            single_ops.linear(x, weight, own, found.bf16)
            for x, weight, own in zip(inputs, (wq, wk, wv), biases, strict=True)
        ]
        if any(each is None or each.shape[-1] != self.embed_dim for each in products):
            return None
        q, k, v = (each.unflatten(-1, (self.num_heads, -1)) for each in products)
        added, mask = masks_of(attn_mask, key_padding_mask, self.num_heads, q.dtype)
        p = self.dropout if self.training else 0.0
        seed = torch.randint(2**62, ()) if p > 0 else None
        outputs = attention(q, k, v, added, mask, seed, p, causal, found.bf16)
        if outputs is None:
            return None
        y: Tensor | None = single_ops.linear(outputs[0].flatten(2), wo, last_bias, found.bf16)
        if y is None:
            return None
        if not batched:
            return y[0]
        return y if self.batch_first else y.transpose(0, 1)

    def _batch_first(self, x: Tensor) -> Tensor:
        if x.dim() == 2:
            return x[None]
        return x if self.batch_first else x.transpose(0, 1)


def attention_without_kernel(module: Any) -> str | None:
    """Why kernels have nothing for an attention of PyTorch; None if they have."""
    if module.bias_k is not None or module.add_zero_attn is not False:
        return "add_bias_kv and add_zero_attn have no kernel"
    return altered_part(module, ATTENTION_PARTS)
