"""The table of JAX's names: what each does to traced arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

#: Functions by the name after `jax.`, such as `nn.softmax` and `lax.scan`.
JAX_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}


def jax_function(*names: str) -> Callable[[Function], Function]:
    """Registers a function under JAX's names."""

    def keep(function: Function) -> Function:
        JAX_FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return keep
