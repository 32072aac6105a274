"""A Llama with LoRA in plain PyTorch, of its fused functions: a peer of `benchmarks.finetune`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, rms_norm, scaled_dot_product_attention, silu
from torch.utils.checkpoint import checkpoint


class Llama(nn.Module):
    """Frozen weights of a folder, and the adapter in it, which is trained."""

    def __init__(
        self, folder: Path, sizes: dict[str, Any], blocks: int, scale: float, *, recompute: bool
    ) -> None:
        super().__init__()
        self.w = load_file(folder / "model.safetensors")
        adapter = load_file(folder / "adapter" / "adapter_model.safetensors")
        trained = {name.replace(".", "/"): nn.Parameter(each) for name, each in adapter.items()}
        self.adapter = nn.ParameterDict(trained)
        self.sizes, self.blocks, self.scale, self.recompute = sizes, blocks, scale, recompute
        size = sizes["width"] // sizes["heads"]
        frequencies = 10000.0 ** (-torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(sizes["context"]), torch.cat([frequencies] * 2))
        self.cos, self.sin = angles.cos(), angles.sin()

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        table = self.w["model.embed_tokens.weight"]
        x = table[tokens]
        for i in range(self.blocks):
            if self.recompute:
                x = checkpoint(self._block, x, i, use_reentrant=False)
            else:
                x = self._block(x, i)
        logits = linear(self._norm(x, "model.norm"), table)
        return cross_entropy(logits.flatten(0, 1), targets.flatten())

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight = self.w[f"{name}.weight"]
        return rms_norm(x, weight.shape, weight, self.sizes["eps"])

    def _adapted(self, x: Tensor, name: str) -> Tensor:
        a, b = (
            self.adapter[f"base_model.model.{name}.lora_{kind}.weight".replace(".", "/")]
            for kind in "AB"
        )
        return linear(x, self.w[f"{name}.weight"]) + self.scale * linear(linear(x, a), b)

    def _heads(self, x: Tensor, heads: int) -> Tensor:
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    def _turned(self, x: Tensor) -> Tensor:
        steps, half = x.shape[-2], x.shape[-1] // 2
        crossed = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return x * self.cos[:steps] + crossed * self.sin[:steps]

    def _block(self, x: Tensor, i: int) -> Tensor:
        name = f"model.layers.{i}"
        z = self._norm(x, f"{name}.input_layernorm")
        heads, groups = self.sizes["heads"], self.sizes["kv_heads"]
        q = self._heads(self._adapted(z, f"{name}.self_attn.q_proj"), heads)
        k = self._heads(linear(z, self.w[f"{name}.self_attn.k_proj.weight"]), groups)
        v = self._heads(self._adapted(z, f"{name}.self_attn.v_proj"), groups)
        o = scaled_dot_product_attention(
            self._turned(q), self._turned(k), v, is_causal=True, enable_gqa=True
        )
        o = o.transpose(1, 2).flatten(2)
        x = x + linear(o, self.w[f"{name}.self_attn.o_proj.weight"])
        z = self._norm(x, f"{name}.post_attention_layernorm")
        gate = silu(linear(z, self.w[f"{name}.mlp.gate_proj.weight"]))
        up = linear(z, self.w[f"{name}.mlp.up_proj.weight"])
        return x + linear(gate * up, self.w[f"{name}.mlp.down_proj.weight"])
