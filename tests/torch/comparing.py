"""Arrays of PyTorch's modules under the names of our layers."""

from __future__ import annotations

import copy
from typing import Any

import handgrad as hg
from handgrad.arrays import Array


def own_arrays(module: Any) -> dict[str, Array]:
    """The parameters of a module, or of a user's module whose children have counterparts."""
    if type(module).__module__.startswith(("torch.", "handgrad.")):
        return dict(hg.from_torch(module).parameters)
    return {
        f"{name}.{key}": array
        for name, child in module.named_children()
        for key, array in own_arrays(child).items()
    }


def own_gradients(module: Any) -> dict[str, Array]:
    """The gradients that PyTorch has added up, under the same names."""
    twin = copy.deepcopy(module)
    for parameter, source in zip(twin.parameters(), module.parameters(), strict=True):
        parameter.data = source.grad.clone()
    return own_arrays(twin)


def draw_weights(module: Any, seed: int = 5) -> Any:
    """The module with other weights, and buffers as after some training."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0.0, 1.0, generator=generator)
            if name.endswith("running_var"):
                buffer.uniform_(0.5, 2.0, generator=generator)
    return module
