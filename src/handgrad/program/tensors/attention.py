"""Attention of several heads, and the modules of torch.nn around it."""

from __future__ import annotations

import math
from typing import Any

from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.functional import dropout, linear, scaled_dot_product_attention
from handgrad.program.tensors.table import special, torch_function, torch_module, xp


def _added(mask: Any) -> Any:
    """A mask of what is hidden, or of numbers, as what is added to scores."""
    return xp.where(mask, -math.inf, 0.0) if mask.dtype == bool else mask


@torch_function()
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: Any,
    num_heads: Any,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: Any,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:
    """Of queries (T, N, E) over keys and values (S, N, E), or of one sequence without N."""
    if any(each is not None for each in (bias_k, bias_v, static_k, static_v)) or add_zero_attn:
        refuse(
            "attention with bias_k, static_k or add_zero_attn is not known; write cat of the keys"
        )
    is_batch = query.ndim == 3
    if not is_batch:
        query, key, value = (x[:, None] for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    width = out_proj_weight.shape[-1]
    matrices: tuple[Any, ...] = (q_proj_weight, k_proj_weight, v_proj_weight)
    if not use_separate_proj_weight:
        matrices = tuple(_third(in_proj_weight, k, width) for k in range(3))
    biases = [None if in_proj_bias is None else _third(in_proj_bias, k, width) for k in range(3)]
    heads = []
    for x, weight, bias in zip((query, key, value), matrices, biases, strict=True):
        time, batch, _ = x.shape
        parts = xp.reshape(linear(x, weight, bias), (time, batch, num_heads, width // num_heads))
        heads.append(xp.transpose(parts, (1, 2, 0, 3)))
    masks = []
    if attn_mask is not None:
        added = _added(attn_mask)
        if added.ndim == 3:
            added = xp.reshape(added, (query.shape[1], num_heads, *added.shape[1:]))
        masks.append(added)
    if key_padding_mask is not None:
        masks.append(_added(key_padding_mask)[:, None, None, :])
    mask = sum(masks[1:], masks[0]) if masks else None
    q, k, v = heads
    weights = None
    if need_weights:
        scores = q @ xp.swapaxes(k, -1, -2) / xp.sqrt(q.shape[-1])
        weights = special.softmax(scores if mask is None else scores + mask, axis=-1)
        y = dropout(weights, dropout_p, training) @ v
        weights = xp.mean(weights, axis=1) if average_attn_weights else weights
    else:
        y = scaled_dot_product_attention(q, k, v, mask, dropout_p if training else 0.0)
    joined = xp.reshape(xp.transpose(y, (2, 0, 1, 3)), (*query.shape[:2], width))
    y = linear(joined, out_proj_weight, out_proj_bias)
    if is_batch:
        return y, weights
    return y[:, 0], None if weights is None else weights[0]


def _third(x: Any, k: int, width: Any) -> Any:
    return x[k * width : (k + 1) * width if k < 2 else None]


@torch_module("MultiheadAttention")
def of_module(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:
    turned = module.batch_first and query.ndim == 3
    if turned:
        query, key, value = (xp.swapaxes(x, 0, 1) for x in (query, key, value))
    separate = not module._qkv_same_embed_dim
    y, weights = multi_head_attention_forward(
        query,
        key,
        value,
        module.embed_dim,
        module.num_heads,
        module.in_proj_weight,
        module.in_proj_bias,
        module.bias_k,
        module.bias_v,
        module.add_zero_attn,
        module.dropout,
        module.out_proj.weight,
        module.out_proj.bias,
        module.training,
        key_padding_mask,
        need_weights,
        attn_mask,
        use_separate_proj_weight=separate,
        q_proj_weight=module.q_proj_weight if separate else None,
        k_proj_weight=module.k_proj_weight if separate else None,
        v_proj_weight=module.v_proj_weight if separate else None,
        average_attn_weights=average_attn_weights,
    )
    return (xp.swapaxes(y, 0, 1) if turned else y), weights


@torch_module("TransformerEncoderLayer")
def of_layer(
    module: Any,
    src: Any,
    src_mask: Any = None,
    src_key_padding_mask: Any = None,
    is_causal: bool = False,
) -> Any:
    """Vaswani and others, Attention is all you need (2017), with the norm before or behind."""

    def attention(x: Any) -> Any:
        return module._sa_block(x, src_mask, src_key_padding_mask)

    if module.norm_first:
        src = src + attention(module.norm1(src))
        return src + module._ff_block(module.norm2(src))
    src = module.norm1(src + attention(src))
    return module.norm2(src + module._ff_block(src))


@torch_module("TransformerEncoder")
def of_encoder(
    module: Any,
    src: Any,
    mask: Any = None,
    src_key_padding_mask: Any = None,
    is_causal: Any = None,
) -> Any:
    for layer in module.layers:
        src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
    return src if module.norm is None else module.norm(src)


@torch_module("TransformerDecoder")
def of_decoder(
    module: Any,
    tgt: Any,
    memory: Any,
    tgt_mask: Any = None,
    memory_mask: Any = None,
    tgt_key_padding_mask: Any = None,
    memory_key_padding_mask: Any = None,
    tgt_is_causal: Any = None,
    memory_is_causal: bool = False,
) -> Any:
    for layer in module.layers:
        tgt = layer(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
        )
    return tgt if module.norm is None else module.norm(tgt)
