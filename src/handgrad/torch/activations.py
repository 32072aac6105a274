"""The activation that a transformer layer of PyTorch holds, by the name of our op."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

_FUNCTIONS: Final = {functional.relu: "relu", torch.relu: "relu", functional.gelu: "gelu"}
_MODULES: Final = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.Sigmoid: "sigmoid", nn.SiLU: "silu"}


def activation_of(f: Any) -> tuple[str, str] | None:
    """Its name and the approximation of GELU; None for another."""
    if type(f) is nn.GELU:
        return "gelu", f.approximate
    name = _MODULES.get(type(f))
    for own, known in _FUNCTIONS.items():  # the compiler of PyTorch 2.6 takes no next(..., None)
        if own is f:
            name = known
    return None if name is None else (name, "none")
