"""Pairs of activations: PyTorch's modules, and ours by the name of the op."""

from __future__ import annotations

from typing import Any, Final

from torch import nn

from handgrad.layers import GEGLU, Activation, Layer, SwiGLU
from handgrad.torch.conversion import parts
from handgrad.torch.conversion.pair import ModulePath, Pair

#: PyTorch's module and the names of its settings by the op's options, for each op.
_MODULES: Final[dict[str, tuple[Any, dict[str, str]]]] = {
    "relu": (nn.ReLU, {}),
    "leaky_relu": (nn.LeakyReLU, {"negative_slope": "negative_slope"}),
    "sigmoid": (nn.Sigmoid, {}),
    "tanh": (nn.Tanh, {}),
    "gelu": (nn.GELU, {"approximate": "approximate"}),
    "silu": (nn.SiLU, {}),
    "softmax": (nn.Softmax, {"axis": "dim"}),
    "erf": (parts.Erf, {}),
    "sin": (parts.Sin, {}),
}


class ActivationPair(Pair):
    """The activation of one op."""

    def __init__(self, op: str) -> None:
        module, self.options = _MODULES[op]
        super().__init__(module, Activation)
        self.op = op

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        options = {own: getattr(module, name) for own, name in self.options.items()}
        if options.get("axis", -1) is None:
            raise path.refusal(module, "has dim=None", "a number")
        return Activation(self.op, **options)

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        return module_named(layer.name, **layer.options)


def module_named(op: str, **options: Any) -> Any:
    """PyTorch's module of an activation with the op's options."""
    module, names = _MODULES[op]
    if op == "softmax":
        options = {"axis": -1, **options}
    return module(**{names[own]: value for own, value in options.items()})


def followed_by_activation(module: Any, path: ModulePath, activation: str, **options: Any) -> Any:
    """The module alone, or before that of its activation."""
    if activation == "identity":
        return module
    return nn.Sequential(module, module_named(activation, **options))


class OverChannels(Pair):
    """The softmax over the channels of images."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        return Activation("softmax", axis=-3)


PAIRS: Final = (
    *map(ActivationPair, _MODULES),
    OverChannels(nn.Softmax2d, Activation),
    Pair(parts.SwiGLUModule, SwiGLU),
    Pair(parts.GEGLUModule, GEGLU, {"approximate": "approximate"}),
)
