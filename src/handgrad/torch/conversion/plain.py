"""Pairs of single layers: products, normalisations, tables and pooling."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import nn

from handgrad.layers import (
    AvgPool1d,
    AvgPool2d,
    BatchNorm,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    GroupNorm,
    InstanceNorm,
    Layer,
    LayerNorm,
    MaxPool1d,
    MaxPool2d,
    Pad,
    RMSNorm,
    Standardize,
)
from handgrad.torch.conversion.activation import followed_by_activation
from handgrad.torch.conversion.pair import NONE, ModulePath, Pair
from handgrad.torch.conversion.parts import AnyBatchNorm
from handgrad.torch.conversion.parts import StandardizeModule as StandardizeModule


def same(*names: str, **renamed: str) -> dict[str, str]:
    """Settings of one name on both sides, and others as torch_name="own_name"."""
    return {name: name for name in names} | renamed


_CONVOLUTION: Final = same(
    *("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups"),
    "bias",
)
_TRANSPOSED: Final = same(*_CONVOLUTION, "output_padding")
_PADDED_WITH_ZEROS: Final = {"padding_mode": "zeros"}
_MAX_POOL: Final = same("kernel_size", "stride", "padding", "dilation")
_AVG_POOL: Final = same("kernel_size", "stride", "padding", "count_include_pad")
_BATCH_NORM: Final = same("momentum", "eps", num_features="channels")
#: Of one axis of space, of two, of three.
_INSTANCE_NORMS: Final = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
#: The modules of each mode, for one axis, two, three; PyTorch has a name for zeros too.
_PADS: Final = {
    "constant": (nn.ConstantPad1d, nn.ConstantPad2d, nn.ConstantPad3d),
    "reflect": (nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d),
    "replicate": (nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d),
    "circular": (nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d),
}
_ZERO_PADS: Final = (nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d)
_GAMMA_BETA: Final = {"weight": "gamma", "bias": "beta"}


class Fused(Pair):
    """A layer that can apply an activation itself; PyTorch has that as a module of its own."""

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        options = layer.options if isinstance(layer, Dense) else {"activation": layer.activation}
        return followed_by_activation(super().module_of(layer, path), path, **options)


class Convolution(Fused):
    """A convolution, whose padding PyTorch may have as a word."""

    def own_settings(self, module: Any, path: ModulePath) -> dict[str, Any]:
        settings = super().own_settings(module, path)
        if module.padding == "valid":
            settings["padding"] = 0
        elif module.padding == "same":
            both = [d * (k - 1) for k, d in zip(module.kernel_size, module.dilation, strict=True)]
            if any(size % 2 for size in both):
                raise path.refusal(
                    module,
                    f"has padding='same', which adds {tuple(both)} values to both sides together",
                    "even numbers, as of odd kernels",
                )
            settings["padding"] = tuple(size // 2 for size in both)
        return settings


class BatchNormPair(Fused):
    """Batch normalisation, which PyTorch has once for each number of axes."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        if module.momentum is None:
            raise path.refusal(module, "has momentum=None", "a number")
        if module.affine and module.bias is None:
            raise path.refusal(module, "has bias=False", "bias=True")
        return super().layer_of(module, path)


class RowNorm(Pair):
    """A normalisation over the last axis; without weights over the last ones."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        if isinstance(module, nn.LayerNorm) and not module.elementwise_affine:
            return Standardize(tuple(range(-len(module.normalized_shape), 0)), eps=module.eps)
        if len(module.normalized_shape) != 1:
            shape = tuple(module.normalized_shape)
            raise path.refusal(module, f"has normalized_shape={shape}", "one axis, the last")
        return super().layer_of(module, path)

    def own_settings(self, module: Any, path: ModulePath) -> dict[str, Any]:
        settings = super().own_settings(module, path)
        eps = module.eps
        if eps is None:  # as PyTorch takes it, of RMSNorm
            eps = torch.finfo(module.weight.dtype).eps
        if self.layer is LayerNorm:
            settings["bias"] = module.bias is not None
        return settings | {"features": module.normalized_shape[0], "eps": eps}

    def torch_settings(self, layer: Any, path: ModulePath) -> dict[str, Any]:
        settings = super().torch_settings(layer, path)
        if self.layer is LayerNorm:
            settings["bias"] = layer.beta is not None
        return settings


class GroupNormPair(Pair):
    """Group normalisation with both weights."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        if module.affine and module.bias is None:
            raise path.refusal(module, "has bias=False", "bias=True")
        return super().layer_of(module, path)


class InstanceNormPair(GroupNormPair):
    """Instance normalisation, which is PyTorch's GroupNorm for any number of axes."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        if not module.affine and not module.track_running_stats:
            axes = 1 + next(i for i, kind in enumerate(_INSTANCE_NORMS) if isinstance(module, kind))
            return Standardize(tuple(range(-axes, 0)), eps=module.eps)
        return super().layer_of(module, path)

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        sizes = {"num_groups": layer.channels, "num_channels": layer.channels, "eps": layer.eps}
        return self.filled(nn.GroupNorm, sizes, layer)


class EmbeddingPair(Pair):
    """A table of rows."""

    def torch_settings(self, layer: Any, path: ModulePath) -> dict[str, Any]:
        tokens, features = layer.weight.shape
        sizes = {"num_embeddings": tokens, "embedding_dim": features}
        return sizes | {"padding_idx": layer.padding_idx}


class GlobalPool(Pair):
    """The mean over everything, in PyTorch a pooling to one value."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        if module.output_size not in (1, (1,), (1, 1)):
            found = f"has output_size={module.output_size!r}"
            raise path.refusal(module, found, "output_size=1")
        return self.layer("global")  # type: ignore[call-arg]


class PadPair(Pair):
    """Values around an image; PyTorch has a module for each mode and number of axes."""

    def __init__(self, module: Any, mode: str) -> None:
        super().__init__(module, Pad)
        self.mode = mode

    def own_settings(self, module: Any, path: ModulePath) -> dict[str, Any]:
        if any(width < 0 for width in module.padding):
            raise path.refusal(module, f"has padding={module.padding}", "numbers from 0")
        return {
            "padding": tuple(module.padding),
            "mode": self.mode,
            "value": float(getattr(module, "value", 0.0)),
        }

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        modules, axes = _PADS[layer.mode], len(layer.padding) // 2
        if axes > len(modules):
            raise path.refusal(layer, f"pads {axes} axes", f"1 to {len(modules)}")
        value = (layer.value,) if layer.mode == "constant" else ()
        return modules[axes - 1](layer.padding, *value)


class AvgPool(Pair):
    """The mean over windows, or over everything."""

    def __init__(self, module: Any, layer: type[Layer], whole: Any, **limits: Any) -> None:
        super().__init__(module, layer, _AVG_POOL, limits={"ceil_mode": False, **limits})
        self.whole = whole

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        whole = layer.kernel_size == "global"
        return self.whole(1) if whole else super().module_of(layer, path)


PAIRS: Final = (
    Fused(nn.Linear, Dense, same("in_features", "out_features", "bias")),
    Convolution(nn.Conv1d, Conv1d, _CONVOLUTION, limits=_PADDED_WITH_ZEROS),
    Convolution(nn.Conv2d, Conv2d, _CONVOLUTION, limits=_PADDED_WITH_ZEROS),
    Pair(nn.ConvTranspose1d, ConvTranspose1d, _TRANSPOSED, limits=_PADDED_WITH_ZEROS),
    Pair(nn.ConvTranspose2d, ConvTranspose2d, _TRANSPOSED, limits=_PADDED_WITH_ZEROS),
    *(
        BatchNormPair(
            module,
            BatchNorm,
            _BATCH_NORM,
            limits={"affine": True, "track_running_stats": True},
            arrays=_GAMMA_BETA,
        )
        for module in (AnyBatchNorm, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    ),
    RowNorm(nn.LayerNorm, LayerNorm, same("eps", normalized_shape="features"), arrays=_GAMMA_BETA),
    RowNorm(
        nn.RMSNorm,
        RMSNorm,
        same("eps", normalized_shape="features"),
        limits={"elementwise_affine": True},
        arrays=_GAMMA_BETA,
    ),
    GroupNormPair(
        nn.GroupNorm,
        GroupNorm,
        same("num_groups", "eps", num_channels="channels"),
        limits={"affine": True},
        arrays=_GAMMA_BETA,
    ),
    *(
        InstanceNormPair(
            module,
            InstanceNorm,
            same("eps", num_features="channels"),
            limits={"affine": True, "track_running_stats": False},
            arrays=_GAMMA_BETA,
        )
        for module in _INSTANCE_NORMS
    ),
    Pair(StandardizeModule, Standardize, same("axes", "eps")),
    EmbeddingPair(
        nn.Embedding,
        Embedding,
        same("padding_idx", num_embeddings="tokens", embedding_dim="features"),
        limits={"max_norm": None, "scale_grad_by_freq": False},
    ),
    Pair(nn.Dropout, Dropout, same("p")),
    Pair(nn.Flatten, Flatten, NONE, limits={"start_dim": 1, "end_dim": -1}),
    Pair(nn.MaxPool1d, MaxPool1d, _MAX_POOL, limits={"ceil_mode": False, "return_indices": False}),
    Pair(nn.MaxPool2d, MaxPool2d, _MAX_POOL, limits={"ceil_mode": False, "return_indices": False}),
    AvgPool(nn.AvgPool1d, AvgPool1d, nn.AdaptiveAvgPool1d),
    AvgPool(nn.AvgPool2d, AvgPool2d, nn.AdaptiveAvgPool2d, divisor_override=None),
    GlobalPool(nn.AdaptiveAvgPool1d, AvgPool1d),
    GlobalPool(nn.AdaptiveAvgPool2d, AvgPool2d),
    *(PadPair(module, mode) for mode, modules in _PADS.items() for module in modules),
    *(PadPair(module, "constant") for module in _ZERO_PADS),
)
