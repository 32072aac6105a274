"""The table of pairs, and the conversion of whole models by it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from torch import nn

from handgrad.layers import (
    LastStep,
    Layer,
    MultiHeadAttention,
    Residual,
    Sequential,
    StepPooling,
)
from handgrad.layers.recurrent import Recurrent
from handgrad.torch.conversion import (
    activation,
    attention,
    losses,
    parts,
    plain,
    recurrent,
    transformer,
)
from handgrad.torch.conversion.pair import ModulePath, Pair, computes_as, prefixed

#: Modules that return more than y, which no container of PyTorch passes on.
_SEVERAL: Final = (nn.RNNBase, nn.MultiheadAttention)
#: Names of children that constructors of containers take for something else.
_TAKEN: Final = ("self", "seed")


class SequentialPair(Pair):
    """Modules one after another, by the same names."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        layers: dict[str, Any] = {}
        for name, child in module._modules.items():
            if name in _TAKEN:
                raise path.at(name).refusal(child, f"is called {name!r}", "another name")
            layers[name] = _convert_child(child, path.at(name))
        numbered = list(layers) == [str(i) for i in range(len(layers))]
        return Sequential(*layers.values()) if numbered else Sequential(**layers)

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        found: OrderedDict[str, Any] = OrderedDict()
        for name, child in layer.layers.items():
            if not name or "." in name or hasattr(nn.Sequential, name):
                raise path.at(name).refusal(child, f"is called {name!r}", "another name")
            found[name] = _wrapped(child, path.at(name))
        return nn.Sequential(found)

    def tensors(self, module: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, child in module._modules.items():
            found |= prefixed(name, tensors_of(child))
        return found


class IdentityPair(Pair):
    """The module that does nothing: a container without layers."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        return Sequential()


class ResidualPair(Pair):
    """A skip connection."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        inner = _convert_child(module.inner, path.at("inner"))
        if module.projection is None:
            return Residual(inner)
        return Residual(inner, _convert_child(module.projection, path.at("projection")))

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        found = {name: _wrapped(each, path.at(name)) for name, each in layer.layers.items()}
        return parts.ResidualModule(**found)

    def tensors(self, module: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, child in module.named_children():
            found |= prefixed(name, tensors_of(child))
        return found


class WrapperPair(Pair):
    """A module around one of several outputs; the layer needs none in a container."""

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        return convert_module(module.module, path.at("module"))

    def tensors(self, module: Any) -> dict[str, Any]:
        return tensors_of(module.module)


#: Pairs both ways; of several with one layer, the first makes the module.
_PAIRS: Final[tuple[Pair, ...]] = (
    *plain.PAIRS,
    *activation.PAIRS,
    *recurrent.PAIRS,
    *attention.PAIRS,
    *transformer.PAIRS,
    SequentialPair(nn.Sequential, Sequential),
    IdentityPair(nn.Identity, Sequential),
    ResidualPair(parts.ResidualModule, Residual),
    Pair(parts.LastStepModule, LastStep, {"bidirectional": "bidirectional"}),
    Pair(parts.StepPoolingModule, StepPooling, {"pooling": "pooling"}),
)
_WRAPPERS: Final = (
    WrapperPair(parts.OutputOnly, Recurrent),
    WrapperPair(parts.SelfAttention, MultiHeadAttention),
)
_BY_MODULE: Final = {pair.module: pair for pair in (*_PAIRS, *_WRAPPERS)}
_BY_LAYER: Final = {pair.layer: pair for pair in reversed(_PAIRS)}


def convert_module(module: Any, path: ModulePath) -> Layer:
    """The layer for a module, whose weights and generators are still to come."""
    return _pair_of_module(module, path).layer_of(module, path)


def convert_layer(layer: Layer, path: ModulePath) -> Any:
    """The module for a layer, with a copy of its weights."""
    own: Any = type(layer)
    for base in own.__mro__:
        pair = _BY_LAYER.get(base)
        if pair is not None:
            if own.forward is not base.forward or own.backward is not base.backward:
                raise path.refusal(layer, "has a forward or backward of its own", base.__name__)
            return pair.module_of(layer, path)
    allowed = ", ".join(sorted({pair.layer.__name__ for pair in _PAIRS}))
    raise path.refusal(layer, "has no counterpart", f"{allowed}")


def tensors_of(module: Any) -> dict[str, Any]:
    """The tensors of a module that was converted, under the names of its layer."""
    return _pair_of_module(module, ModulePath("from_torch")).tensors(module)


def _pair_of_module(module: Any, path: ModulePath) -> Pair:
    for base in type(module).__mro__:
        if base in _BY_MODULE:
            if not computes_as(module, base):
                raise path.refusal(module, "has a forward of its own", f"nn.{base.__name__}")
            return _BY_MODULE[base]
    found = {pair.module.__name__ for pair in _PAIRS if hasattr(nn, pair.module.__name__)}
    names = sorted({*found, *losses.NAMES} if not path.path else found)
    raise path.refusal(module, "has no counterpart", f"torch.nn's {_families(names)}")


def _families(names: Iterable[str]) -> str:
    """The names, with those that differ in their number of axes as one: MaxPool1d/2d."""
    found: dict[str, list[str]] = {}
    for name in names:
        family, axes = (name[:-2], name[-2:]) if name.endswith(("1d", "2d", "3d")) else (name, "")
        found.setdefault(family, []).append(axes)
    return ", ".join(family + "/".join(axes) for family, axes in found.items())


def _convert_child(module: Any, path: ModulePath) -> Layer:
    """The layer for a module in a container, which passes one output on."""
    if isinstance(module, _SEVERAL):
        wrapper = "SelfAttention" if isinstance(module, nn.MultiheadAttention) else "OutputOnly"
        found = "stands in a container and returns more than y"
        raise path.refusal(module, found, f"handgrad.torch.{wrapper} around it")
    return convert_module(module, path)


def _wrapped(layer: Layer, path: ModulePath) -> Any:
    """The module for a layer in a container, which calls it with x alone and keeps y alone."""
    module = convert_layer(layer, path)
    if isinstance(layer, Recurrent):
        return parts.OutputOnly(module)
    return parts.SelfAttention(module) if isinstance(layer, MultiHeadAttention) else module
