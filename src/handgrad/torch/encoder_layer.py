"""PyTorch's TransformerEncoderLayer on handgrad's kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from handgrad.torch.activations import activation_of
from handgrad.torch.encoder_layer_op import encoder_layer
from handgrad.torch.masks import masks_of
from handgrad.torch.operands import operands

#: Activations whose derivative survives that their output is dropped.
_ACTIVATIONS = ("relu", "gelu", "silu")


class TransformerEncoderLayer(nn.TransformerEncoderLayer):  # type: ignore[misc, unused-ignore]
    """`torch.nn.TransformerEncoderLayer` on handgrad's kernels: the same arguments, parameters and
    results.

    A query that may look nowhere attends to nothing, where PyTorch gives NaN. Dropout draws other
    numbers than PyTorch's, from a seed that its generator gives.
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Tensor:
        given = (src_mask, src_key_padding_mask, is_causal)
        named = activation_of(self.activation)
        rate = self._rate()
        if named is None or named[0] not in _ACTIVATIONS or rate is None or not self._fits(*given):
            return super().forward(src, *given)
        if src.is_nested or src.dim() not in (2, 3) or src.shape[-1] != self.linear1.in_features:
            return super().forward(src, *given)
        attention = self.self_attn
        found = operands(
            "TransformerEncoderLayer",
            src,
            *(attention.in_proj_weight, attention.in_proj_bias),
            *(attention.out_proj.weight, attention.out_proj.bias),
            *(self.linear1.weight, self.linear1.bias, self.linear2.weight, self.linear2.bias),
            *(self.norm1.weight, self.norm1.bias, self.norm2.weight, self.norm2.bias),
        )
        if found is None:
            return super().forward(src, *given)
        x, *weights = found.tensors
        if x.dim() == 2:
            x = x[None]
        elif not attention.batch_first:
            x = x.transpose(0, 1)
        bias, mask = masks_of(
            None if is_causal else src_mask, src_key_padding_mask, attention.num_heads, x.dtype
        )
        y, *_ = encoder_layer(
            x.contiguous(),
            *weights,
            bias,
            mask,
            torch.randint(2**62, ()) if rate > 0 else None,
            attention.num_heads,
            *named,
            rate,
            self.norm1.eps,
            self.norm2.eps,
            self.norm_first,
            is_causal,
            found.bf16,
        )
        if src.dim() == 2:
            y = y[0]
        elif not attention.batch_first:
            y = y.transpose(0, 1)
        return found.result(y)

    def _rate(self) -> float | None:
        """The rate of dropout in this mode; None for several."""
        if not self.training:
            return 0.0
        rates = {self.dropout.p, self.dropout1.p, self.dropout2.p, self.self_attn.dropout}
        return rates.pop() if len(rates) == 1 else None

    def _fits(self, src_mask: Any, src_key_padding_mask: Any, is_causal: bool) -> bool:
        """Return whether the operator has these masks: a learned one needs a gradient, and PyTorch
        has words for is_causal alone."""
        learned = any(
            each is not None and each.requires_grad for each in (src_mask, src_key_padding_mask)
        )
        return not learned and (src_mask is not None or not is_causal)
