"""The pair of multi-head attention: PyTorch packs three projections into one matrix."""

from __future__ import annotations

from typing import Any, Final

from torch import nn

from handgrad.layers import MultiHeadAttention
from handgrad.torch.conversion.pair import ModulePath, Pair, own_tensors, prefixed

_PROJECTIONS: Final = ("q_proj", "k_proj", "v_proj")


class AttentionPair(Pair):
    """Attention. The layer returns y alone, and takes masks with True where a query may look."""

    def own_settings(self, module: Any, path: ModulePath) -> dict[str, Any]:
        sizes = {"q_size": module.embed_dim, "k_size": module.kdim, "v_size": module.vdim}
        settings = {"heads": module.num_heads, "dropout": module.dropout}
        return sizes | settings | {"bias": module.in_proj_bias is not None}

    def torch_settings(self, layer: Any, path: ModulePath) -> dict[str, Any]:
        size, heads = layer.sizes["query"], layer.heads
        usual = (size // heads, size // heads)
        if set(layer.layers) != {*_PROJECTIONS, "o_proj"} or layer.head_sizes != usual:
            found = f"has heads of the sizes {layer.head_sizes}"
            raise path.refusal(layer, found, f"{usual}, and a projection of each input and of y")
        path.check(layer, {"kv_heads": heads, "out_size": size})
        return {
            "embed_dim": size,
            "num_heads": heads,
            "dropout": layer.dropout,
            "bias": layer.layers["q_proj"].bias is not None,
            "kdim": layer.sizes["key"],
            "vdim": layer.sizes["value"],
            "batch_first": True,
        }

    def tensors(self, module: Any) -> dict[str, Any]:
        own = dict(own_tensors(module))
        found: dict[str, Any] = {}
        for name in _PROJECTIONS:
            if f"{name}_weight" in own:
                found[f"{name}.weight"] = own[f"{name}_weight"]
        for kind in ("weight", "bias"):
            if f"in_proj_{kind}" in own:
                thirds = own[f"in_proj_{kind}"].chunk(3)
                found |= {f"{n}.{kind}": part for n, part in zip(_PROJECTIONS, thirds, strict=True)}
        return found | prefixed("o_proj", dict(own_tensors(module.out_proj)))


PAIRS: Final = (
    AttentionPair(
        nn.MultiheadAttention,
        MultiHeadAttention,
        limits={"batch_first": True, "bias_k": None, "bias_v": None, "add_zero_attn": False},
        own_limits={"rotary": False, "scale": None, "post_dropout": 0.0},
    ),
)
