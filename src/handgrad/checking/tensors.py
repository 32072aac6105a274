"""PyTorch's tensors among what a user's functions take and give, as NumPy's arrays."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np


def is_tensor(value: Any) -> bool:
    """Return whether this is a tensor of PyTorch, which is imported where one exists."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and bool(torch.is_tensor(value))


def as_values(value: Any) -> Any:
    """A tensor of PyTorch, or an array of JAX that JAX does not trace, as one of NumPy.

    Anything else is returned as it is.
    """
    if is_tensor(value):
        return value.detach().numpy()
    is_jax = type(value).__module__.partition(".")[0] == "jaxlib" and hasattr(value, "__array__")
    return np.asarray(value) if is_jax else value


def uses_torch(function: Any) -> bool:
    """Return whether a function's module has imported PyTorch."""
    function = getattr(function, "__func__", function)
    scope = getattr(function, "__globals__", {})
    torch = sys.modules.get("torch")
    return torch is not None and any(
        isinstance(each, ModuleType) and each.__name__.partition(".")[0] == "torch"
        for each in scope.values()
    )


def as_tensors(nested: Any) -> Any:
    """The same with every array a tensor that shares its memory."""
    from handgrad.interop.pytorch import to_tensor

    if isinstance(nested, np.ndarray | np.generic):
        return to_tensor(nested)
    return _mapped(nested, as_tensors)


def as_arrays(nested: Any) -> Any:
    """The same with every tensor an array."""
    if is_tensor(nested):
        from handgrad.interop.pytorch import to_array

        return to_array(nested)
    return _mapped(nested, as_arrays)


def _mapped(nested: Any, change: Any) -> Any:
    if isinstance(nested, Mapping):
        return {key: change(each) for key, each in nested.items()}
    if isinstance(nested, tuple) and hasattr(nested, "_fields"):
        return type(nested)(*map(change, nested))
    if isinstance(nested, tuple | list):
        return type(nested)(map(change, nested))
    return nested
