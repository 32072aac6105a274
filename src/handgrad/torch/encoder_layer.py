"""PyTorch's TransformerEncoderLayer on handgrad's kernels."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor, nn

from handgrad.torch.activations import activation_of
from handgrad.torch.alterations import alteration_of, altered_part
from handgrad.torch.attention import (
    ATTENTION_PARTS,
    MultiheadAttention,
    attention_without_kernel,
)
from handgrad.torch.bridge import hand_over
from handgrad.torch.encoder_layer_op import encoder_layer
from handgrad.torch.masks import are_masks, masks_of
from handgrad.torch.modules import LayerNorm, Linear
from handgrad.torch.operands import operands

#: Activations whose derivative survives that their output is dropped.
_ACTIVATIONS = ("relu", "gelu", "silu")
#: The parts that the operator computes without calling them, and their classes.
_PARTS: Final = {
    "self_attn": (nn.MultiheadAttention, MultiheadAttention),
    **{f"self_attn.{path}": classes for path, classes in ATTENTION_PARTS.items()},
    **dict.fromkeys(("linear1", "linear2"), (nn.Linear, Linear)),
    **dict.fromkeys(("norm1", "norm2"), (nn.LayerNorm, LayerNorm)),
    **dict.fromkeys(("dropout", "dropout1", "dropout2"), (nn.Dropout,)),
}
#: PyTorch's own methods for the two halves of a layer.
_METHODS: Final = ("_sa_block", "_ff_block")


class TransformerEncoderLayer(nn.TransformerEncoderLayer):  # type: ignore[misc, unused-ignore]
    """`torch.nn.TransformerEncoderLayer` on handgrad's kernels: the same arguments, parameters and
    results.

    A query that may look nowhere attends to nothing, where PyTorch gives NaN. Dropout draws other
    numbers than PyTorch's, from a seed that its generator gives.
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        given = (src_mask, src_key_padding_mask, is_causal)
        reason = without_operator(self)
        if reason is None:
            if not self._fits(src, *given):
                return super().forward(src, *given)
            reason = self._refusal(given[:2])
        if reason is not None:
            hand_over("TransformerEncoderLayer", reason)
            return super().forward(src, *given)
        named: Any = activation_of(self.activation)
        rate = self.dropout.p if self.training else 0.0
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
        outputs = encoder_layer(
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
        if outputs is None:
            return super().forward(src, *given)
        y = outputs[0]
        if src.dim() == 2:
            y = y[0]
        elif not attention.batch_first:
            y = y.transpose(0, 1)
        return found.result(y)

    def _fits(self, src: Tensor, src_mask: Any, src_key_padding_mask: Any, is_causal: bool) -> bool:
        """Return whether PyTorch would take these arguments, and not by a way of its own."""
        if src.is_nested or src.dim() not in (2, 3) or src.shape[-1] != self.linear1.in_features:
            return False
        if src.numel() == 0 and (src_mask, src_key_padding_mask) != (None, None):
            return False
        features = src.shape[-1]
        if self.self_attn.embed_dim != features or not are_masks(src_mask, src_key_padding_mask):
            return False
        if any(norm.normalized_shape != (features,) for norm in (self.norm1, self.norm2)):
            return False
        return src_mask is not None or not is_causal

    def _refusal(self, masks: tuple[Any, ...]) -> str | None:
        """Why the operator does not compute this call; None if it does."""
        if any(mask is not None and mask.requires_grad for mask in masks):
            return "a mask has a gradient"
        modules: Any = torch.nn.modules.module
        if modules._has_any_global_hook():
            return "hooks of all modules are registered"
        parts = (self.dropout, self.dropout1, self.dropout2, self.self_attn)
        if any(part.training is not self.training for part in parts):
            return "some of its parts train and others do not"
        drops = (self.dropout.p, self.dropout1.p, self.dropout2.p, self.self_attn.dropout)
        if self.training and len(set(drops)) > 1:
            return "it has several rates of dropout"
        return None


def without_operator(module: Any) -> str | None:
    """Why the operator has nothing for an encoder layer of PyTorch; None if it has."""
    named = activation_of(module.activation)
    if named is None or named[0] not in _ACTIVATIONS:
        return f"its activation is none of {', '.join(_ACTIVATIONS)}"
    reason = alteration_of_parts(module)
    if reason is not None:
        return reason
    reason = attention_without_kernel(module.self_attn)
    return None if reason is None else f"in its self_attn {reason}"


def alteration_of_parts(module: Any) -> str | None:
    """Why the parts of an encoder layer do not compute what their class says; None if they do."""
    if isinstance(module.activation, nn.Module):
        found = alteration_of(module.activation)
        if found is not None:
            return f"its activation has {found}"
    for name in _METHODS:
        own = module.__dict__.get(name, getattr(type(module), name))
        if own is not getattr(nn.TransformerEncoderLayer, name):
            return f"its {name} is its own"
    return altered_part(module, _PARTS)
