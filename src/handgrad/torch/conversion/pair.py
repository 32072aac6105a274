"""A module of PyTorch and the layer that computes the same: settings and weights, both ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers import Layer

#: No setting is limited, or no name differs.
NONE: Mapping[str, Any] = MappingProxyType({})


class ModulePath(NamedTuple):
    """A module or layer in the model that is converted, for the sentence that refuses it."""

    function: str
    path: str = ""

    def at(self, name: str) -> ModulePath:
        """The place of the child of this name."""
        return ModulePath(self.function, f"{self.path}.{name}" if self.path else name)

    def refusal(self, thing: Any, found: str, allowed: str) -> ArgumentError:
        """The error for what stands here."""
        where = f" at {self.path[:80]!r}" if self.path else ""
        return ArgumentError(
            f"{self.function}: {type(thing).__name__}{where} {found}; allowed: {allowed}"
        )

    def check(self, thing: Any, limits: Mapping[str, Any]) -> None:
        """Raise ArgumentError unless these settings have the only values that are taken."""
        for name, allowed in limits.items():
            value = getattr(thing, name)
            if value != allowed:
                raise self.refusal(thing, f"has {name}={shown(value)}", f"{name}={allowed!r}")


class Pair:
    """A module's class and a layer's class whose settings differ in their names alone.

    `settings` are the arguments of the layer's constructor by those of the module's; both keep them
    as attributes. `limits` and `own_limits` are settings of the module and of the layer that the
    other has not, with the value that stands for none. `arrays` are names of the module's tensors
    that the layer calls otherwise.
    """

    def __init__(
        self,
        module: Any,
        layer: type[Layer],
        settings: Mapping[str, str] = NONE,
        *,
        limits: Mapping[str, Any] = NONE,
        own_limits: Mapping[str, Any] = NONE,
        arrays: Mapping[str, str] = NONE,
    ) -> None:
        self.module = module
        self.layer = layer
        self.settings = settings
        self.limits = limits
        self.own_limits = own_limits
        self.arrays = arrays

    def layer_of(self, module: Any, path: ModulePath) -> Layer:
        """The layer for a module, with its settings and not yet its weights."""
        path.check(module, self.limits)
        settings = self.own_settings(module, path)
        if self.tensors(module):
            settings["dtype"] = float_type(module)
        return self.layer(**settings)

    def module_of(self, layer: Any, path: ModulePath) -> Any:
        """The module for a layer, with a copy of its weights."""
        path.check(layer, self.own_limits)
        return self.filled(self.module, self.torch_settings(layer, path), layer)

    def own_settings(self, module: Any, path: ModulePath) -> dict[str, Any]:
        """The arguments of the layer's constructor."""
        return {own: plain(name, getattr(module, name)) for name, own in self.settings.items()}

    def torch_settings(self, layer: Any, path: ModulePath) -> dict[str, Any]:
        """The arguments of the module's constructor."""
        return {name: plain(name, getattr(layer, own)) for name, own in self.settings.items()}

    def tensors(self, module: Any) -> dict[str, Any]:
        """The module's parameters and buffers under the layer's names, in the module's memory."""
        return {self.arrays.get(name, name): tensor for name, tensor in own_tensors(module)}

    def filled(self, kind: Any, settings: Mapping[str, Any], layer: Layer) -> Any:
        """A module of this class that has the layer's arrays; PyTorch's generator is not used."""
        with torch.device("meta"):
            module = kind(**settings)
        arrays = {**layer.parameters, **layer.buffers}
        if arrays:
            module.to(torch_type(next(iter(arrays.values())).dtype))
        module.to_empty(device="cpu")
        with torch.no_grad():
            for buffer in module.buffers():
                buffer.zero_()
            for name, tensor in self.tensors(module).items():
                tensor.copy_(torch.tensor(arrays[name]))
        return module


def computes_as(module: Any, kind: Any) -> bool:
    """Return whether this is a module of the class, or of one derived from it, with its forward.

    Modules of handgrad.torch compute the same as the class that they are derived from.
    """
    own = type(module)
    ours = own.__module__.startswith("handgrad.")
    return isinstance(module, kind) and (ours or own.forward is kind.forward)


def own_tensors(module: Any) -> Iterator[tuple[str, Any]]:
    """The parameters and buffers of this very module, without the counter of batches."""
    for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
        yield name, parameter.detach()
    for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False):
        if name != "num_batches_tracked":
            yield name, buffer


def plain(name: str, value: Any) -> Any:
    """A setting as the other side takes it: of a bias, which is kept as an array, its presence."""
    return value is not None if name == "bias" else value


def prefixed(prefix: str, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors of a child under its name."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def float_type(module: Any) -> Any:
    """The type of the layer for this module: float64 where a parameter is, else float32."""
    wide = any(tensor.dtype == torch.float64 for tensor in module.parameters())
    return np.float64 if wide else np.float32


def torch_type(dtype: np.dtype[Any]) -> Any:
    """PyTorch's name of a float type."""
    return torch.from_numpy(np.empty(0, dtype)).dtype


def to_array(path: ModulePath, module: Any, name: str, tensor: Any) -> Array:
    """The values of a tensor in float64 or float32. Raises ArgumentError where it has none."""
    if tensor.is_meta or not tensor.is_floating_point():
        found = "on the device meta" if tensor.is_meta else str(tensor.dtype).removeprefix("torch.")
        raise path.refusal(module, f"has {name!r} {found}", "floats with values")
    wide = tensor.dtype == torch.float64
    array: Array = tensor.to("cpu", torch.float64 if wide else torch.float32).numpy()
    return array
