"""Modules that compute otherwise than their class says: hooks, parametrizations, own functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def alteration_of(module: Any) -> str | None:
    """Why a call of the module is not what its class computes, as the part of a sentence."""
    if (
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    ):
        return "hooks"
    return own_function_of(module)


def own_function_of(module: Any) -> str | None:
    """The same without hooks, which stay where a module's class alone changes."""
    if "parametrizations" in module._modules:
        return "parametrizations"
    if "forward" in module.__dict__:
        return "a forward of its own"
    return None


def altered_part(module: Any, parts: Mapping[str, Sequence[type]]) -> str | None:
    """Why parts of the module, by path with the classes that they may have, have to be called."""
    for path, classes in parts.items():
        part = module
        for name in path.split("."):
            part = part._modules.get(name)
        if type(part) not in classes:
            return f"its {path} is of the class {type(part).__name__}"
        found = alteration_of(part)
        if found is not None:
            return f"its {path} has {found}"
    return None
