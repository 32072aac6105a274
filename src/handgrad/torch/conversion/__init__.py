"""Modules of PyTorch as layers, and layers as modules of PyTorch: `from_torch` and `to_torch`."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.utils import parametrize

from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.losses import Loss
from handgrad.torch.conversion.causal import hide_later_steps
from handgrad.torch.conversion.losses import convert_loss
from handgrad.torch.conversion.pair import ModulePath, to_array
from handgrad.torch.conversion.table import convert_layer, convert_module, tensors_of


def from_torch(module: Any, *, seed: int) -> Layer | Loss:
    """`hg.from_torch`, which says more."""
    if not isinstance(module, nn.Module):
        raise ArgumentError(
            f"from_torch: a {type(module).__name__} is given; allowed: a torch.nn.Module"
        )
    path = ModulePath("from_torch")
    _check_apart(module, path)
    _check_plain(module)
    loss = convert_loss(module, path)
    if loss is not None:
        return loss
    layer = convert_module(module, path).build(seed=seed)
    arrays = {
        name: to_array(path, module, name, tensor) for name, tensor in tensors_of(module).items()
    }
    layer.update_parameters({name: arrays[name] for name in layer.parameters})
    layer.update_buffers({name: arrays[name] for name in layer.buffers})
    return layer


def to_torch(layer: Layer) -> Any:
    """`hg.to_torch`, which says more."""
    return convert_layer(layer, ModulePath("to_torch")).train(False)


def _check_plain(module: Any) -> None:
    """Raise ArgumentError for a module in it whose call is more than its forward."""
    for name, each in module.named_modules():
        path = ModulePath("from_torch", name)
        if parametrize.is_parametrized(each):
            allowed = "torch.nn.utils.parametrize.remove_parametrizations first"
            raise path.refusal(each, "has parametrized weights", allowed)
        hooks = [*each._forward_pre_hooks.values(), *each._forward_hooks.values()]
        if any(hook is not hide_later_steps for hook in hooks):
            raise path.refusal(each, "has hooks", "modules without hooks")


def _check_apart(module: Any, path: ModulePath) -> None:
    """Raise ArgumentError for a parameter that stands in two places."""
    first: dict[int, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if (other := first.setdefault(id(parameter), name)) != name:
            found = f"has one array as {other[:80]!r} and {name[:80]!r}"
            raise path.refusal(module, found, "an array of its own for each")
