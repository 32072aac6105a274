"""Parts of the equivalents in PyTorch that several ops share; F is torch.nn.functional."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def activated(F: Any, a: Any, options: Mapping[str, Any]) -> Any:
    activation = options.get("activation", "identity")
    if activation == "identity":
        return a
    if activation == "leaky_relu":
        return F.leaky_relu(a, options.get("negative_slope", 0.01))
    if activation == "gelu":
        return F.gelu(a, approximate=options.get("approximate", "none"))
    if activation in ("erf", "sin"):
        return getattr(a, activation)()
    return {"relu": F.relu, "sigmoid": F.sigmoid, "tanh": F.tanh, "silu": F.silu}[activation](a)


def as_input(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """PyTorch's functional name of x."""
    return {"input" if name == "x" else name: array for name, array in arrays.items()}
