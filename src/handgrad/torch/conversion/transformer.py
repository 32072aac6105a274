"""Pairs of transformer layers and of the stacks of them."""

from __future__ import annotations

from typing import Any, Final

from torch import nn

from handgrad.layers import Layer, TransformerBlock, TransformerDecoder, TransformerEncoder
from handgrad.torch.activations import activation_of
from handgrad.torch.conversion.activation import module_named
from handgrad.torch.conversion.attention import PAIRS as ATTENTION
from handgrad.torch.conversion.causal import add_causal_mask, is_causal
from handgrad.torch.conversion.pair import ModulePath, Pair, computes_as, own_tensors, prefixed

_NORM_ARRAYS: Final = {"weight": "gamma", "bias": "beta"}
(_attention,) = ATTENTION


class BlockPair(Pair):
    """An encoder or decoder layer. A causal block becomes a module that adds the mask itself."""

    def __init__(self, module: Any, *, cross: bool) -> None:
        super().__init__(module, TransformerBlock)
        self.cross = cross
        self.parts = ("attention", *(("cross_attention",) if cross else ()), "feed_forward")

    def own_settings(self, module: Any, path: ModulePath) -> dict[str, Any]:
        numbers = range(1, len(self.parts) + 1)
        norms = [getattr(module, f"norm{i}") for i in numbers]
        drops = [module.dropout, *(getattr(module, f"dropout{i}") for i in numbers)]
        attentions = [module.self_attn, *([module.multihead_attn] if self.cross else [])]
        linears = [module.linear1, module.linear2]
        kinds = {nn.LayerNorm: norms, nn.Dropout: drops, nn.Linear: linears}
        for kind, children in (kinds | {nn.MultiheadAttention: attentions}).items():
            for child in children:
                if not computes_as(child, kind):
                    raise path.refusal(child, "is a part of a layer", f"nn.{kind.__name__}")
        for attention in attentions:
            path.check(attention, _attention.limits)
        rates = [*(drop.p for drop in drops), *(attention.dropout for attention in attentions)]
        named = activation_of(module.activation)
        if named is None:
            f = module.activation
            found = f"has the activation {getattr(f, '__name__', type(f).__name__)}"
            allowed = "relu or gelu, nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh or nn.Sigmoid"
            raise path.refusal(module, found, allowed)
        activation, approximate = named
        return {
            "d_model": module.linear1.in_features,
            "heads": module.self_attn.num_heads,
            "hidden": module.linear1.out_features,
            "norm": "pre" if module.norm_first else "post",
            "activation": activation,
            "approximate": approximate,
            "dropout": _one(path, module, "rates of dropout", rates),
            "cross": self.cross,
            "causal": is_causal(module),
            "eps": _one(path, module, "values of eps", [norm.eps for norm in norms]),
            "bias": module.linear1.bias is not None,
        }

    def torch_settings(self, layer: Any, path: ModulePath) -> dict[str, Any]:
        attention = layer.layers["attention"]
        network = layer.layers["feed_forward"].inner.layers
        if "gate" in network:
            found = f"has activation={type(network['gate']).__name__.lower()!r}"
            raise path.refusal(layer, found, "one that is no gate")
        dropout = attention.inner.post_dropout
        path.check(attention.inner, {"rotary": False, "kv_heads": attention.inner.heads})
        linear1 = network["linear1"]
        return {
            "d_model": linear1.in_features,
            "nhead": attention.inner.heads,
            "dim_feedforward": linear1.out_features,
            "dropout": dropout,
            "activation": _torch_activation(**linear1.options),
            "layer_norm_eps": attention.norm.eps,
            "batch_first": True,
            "norm_first": attention.norm_position == "pre",
            "bias": linear1.bias is not None,
        }

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        if layer.cross and not self.cross:  # one class of layers for two of modules
            return _DECODER.module_of(layer, path)
        module = super().module_of(layer, path)
        return add_causal_mask(module) if layer.causal else module

    def tensors(self, module: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for i, name in enumerate(self.parts, start=1):
            norm = dict(own_tensors(getattr(module, f"norm{i}")))
            norm = {_NORM_ARRAYS[kind]: tensor for kind, tensor in norm.items()}
            found |= prefixed(f"{name}.norm", norm)
        found |= prefixed("attention.inner", _attention.tensors(module.self_attn))
        if self.cross:
            memory = _attention.tensors(module.multihead_attn)
            found |= prefixed("cross_attention.inner", memory)
        for name in ("linear1", "linear2"):
            linear = dict(own_tensors(getattr(module, name)))
            found |= prefixed(f"feed_forward.inner.{name}", linear)
        return found


class StackPair(Pair):
    """A stack of equal layers, and perhaps a norm behind them."""

    def __init__(self, module: Any, layer: type[Layer], block: BlockPair) -> None:
        super().__init__(module, layer)
        self.block = block

    def own_settings(self, module: Any, path: ModulePath) -> dict[str, Any]:
        if not len(module.layers):
            raise path.refusal(module, "has no layers", "1 or more")
        blocks = []
        for i, each in enumerate(module.layers):
            here = path.at(f"layers.{i}")
            if not computes_as(each, self.block.module):
                raise here.refusal(each, "stands in a stack", f"nn.{self.block.module.__name__}")
            blocks.append(self.block.own_settings(each, here))
        if any(settings != blocks[0] for settings in blocks):
            raise path.refusal(module, "has layers of different settings", "the same for all")
        settings = blocks[0] | {"causal": is_causal(module), "blocks": len(blocks)}
        settings["final_norm"] = module.norm is not None
        if module.norm is not None:
            bias = getattr(module.norm, "bias", None) is not None
            found = {"eps": getattr(module.norm, "eps", None), "bias": bias}
            wanted = {name: settings[name] for name in found}
            if not computes_as(module.norm, nn.LayerNorm) or found != wanted:
                allowed = f"None or nn.LayerNorm with {wanted}, as in the layers"
                raise path.at("norm").refusal(module.norm, "stands behind the layers", allowed)
        if not self.block.cross:
            del settings["cross"]
        return settings

    def torch_settings(self, layer: Any, path: ModulePath) -> dict[str, Any]:
        block = self.block.torch_settings(layer.blocks[0], path.at("0"))
        norm = None
        if layer.norm is not None:
            norm = nn.LayerNorm(block["d_model"], layer.norm.eps, bias=block["bias"])
        settings = {"num_layers": len(layer.blocks), "norm": norm}
        if not self.block.cross:  # nested tensors would leave 0 where padding is hidden
            settings["enable_nested_tensor"] = False
        name = "decoder_layer" if self.block.cross else "encoder_layer"
        return {name: self.block.module(**block), **settings}

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        module = super().module_of(layer, path)
        return add_causal_mask(module) if layer.blocks[0].causal else module

    def tensors(self, module: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for i, each in enumerate(module.layers):
            found |= prefixed(str(i), self.block.tensors(each))
        if module.norm is not None:
            norm = {_NORM_ARRAYS[kind]: tensor for kind, tensor in own_tensors(module.norm)}
            found |= prefixed("norm", norm)
        return found


def _one(path: ModulePath, module: Any, what: str, values: list[Any]) -> Any:
    """The one value that all of these are. Raises ArgumentError for several."""
    if len(set(values)) > 1:
        found = ", ".join(map(str, sorted(set(values))))
        raise path.refusal(module, f"has several {what}: {found}", "one for all its parts")
    return values[0]


def _torch_activation(activation: str, **options: Any) -> Any:
    plain = activation == "relu" or (activation == "gelu" and options["approximate"] == "none")
    if plain:
        return activation
    return nn.Identity() if activation == "identity" else module_named(activation, **options)


_ENCODER: Final = BlockPair(nn.TransformerEncoderLayer, cross=False)
_DECODER: Final = BlockPair(nn.TransformerDecoderLayer, cross=True)
PAIRS: Final = (
    _ENCODER,
    _DECODER,
    StackPair(nn.TransformerEncoder, TransformerEncoder, _ENCODER),
    StackPair(nn.TransformerDecoder, TransformerDecoder, _DECODER),
)
