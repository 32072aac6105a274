"""The modules of JAX as a traced function sees them."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad.program.jax_arrays.table import JAX_FUNCTIONS
from handgrad.program.primitives.table import refuse
from handgrad.program.standins import MODULES, shown_module
from handgrad.program.tensors.module import Tensor
from handgrad.program.tensors.table import xp

#: Arguments that say how a processor computes, and not what.
_PROCESSOR: Final = (
    *("precision", "preferred_element_type", "out_sharding", "device", "unroll", "_dot_general"),
)
#: Modules whose functions are imported by their names, in the order in which they are looked for.
_PUBLIC: Final = ("nn", "lax", "scipy.special", "numpy", "")


class JaxModule:
    """jax, or a module of it, as the traced function sees it."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, types.ModuleType):
            is_tree = value.__name__ in ("jax.tree", "jax.tree_util")
            return value if is_tree else JaxModule(value)
        return shown(value, self._module.__name__.partition(".")[2], name)


def shown(value: Any, module: str, name: str) -> Any:
    """The stand-in of a thing of a module of JAX's, such as `exp` of `numpy`."""
    key = f"{module}.{name}".lstrip(".")
    if key in JAX_FUNCTIONS:
        return JAX_FUNCTIONS[key]
    if name in ("ndarray", "Array"):
        return Tensor
    if isinstance(value, types.ModuleType) or not callable(value):
        return value
    if module.startswith("numpy") and hasattr(_numpys(module), name):
        own = getattr(_numpys(module), name)
        is_type = isinstance(getattr(np, name, None), type)
        return own if is_type else _without_processor(own)
    if module.startswith("scipy.") and hasattr(_scipys(module), name):
        return getattr(_scipys(module), name)
    if hasattr(value, "dtype"):
        return np.float32  # bfloat16, which NumPy does not have
    return _unknown(f"jax.{key}")


def _numpys(module: str) -> Any:
    """NumPy's module for one of jax.numpy."""
    found = xp
    for part in module.split(".")[1:]:
        found = getattr(found, part)
    return found


def _scipys(module: str) -> Any:
    """SciPy's module for one of jax.scipy, as a traced function sees it."""
    return shown_module(importlib.import_module(module))


def _without_processor(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        unsaid = {k for k, v in kwargs.items() if k in _PROCESSOR or (k == "where" and v is None)}
        return function(*args, **{k: v for k, v in kwargs.items() if k not in unsaid})

    return called


def _unknown(name: str) -> Callable[..., Any]:
    def unknown(*_: Any, **__: Any) -> Any:
        if name == "jax.nn.dot_product_attention":
            refuse(f"{name} computes in single precision; write softmax(q @ k.T) @ v")
        if name.startswith("jax.random"):
            refuse("random numbers are drawn; give what is drawn as an argument")
        refuse(f"{name} is not known to derive")

    return unknown


def shown_function_of(x: Any) -> Any:
    """The stand-in of a function that was imported from JAX by its name; None for other things."""
    home = str(getattr(x, "__module__", "")).split(".")[0]
    if home not in ("jax", "jaxlib") or not callable(x) or "jax" not in sys.modules:
        return None
    name = str(getattr(x, "__name__", ""))
    for module in _PUBLIC:
        place: Any = sys.modules["jax"]
        for part in filter(None, module.split(".")):
            place = getattr(place, part)
        if getattr(place, name, None) is x:
            return shown(x, module, name)
    return None if isinstance(x, type) else _unknown(f"jax's {name}")


def within_jax(x: Any) -> Any:
    """The user's function in one that JAX has made of it, by jit and its like; None for others."""
    if type(x).__module__.split(".")[0] not in ("jax", "jaxlib"):
        return None
    home = str(getattr(x, "__module__", "")).split(".")[0]
    return None if home in ("jax", "jaxlib") else getattr(x, "__wrapped__", None)


def has_own_rule(x: Any) -> bool:
    """True for a function of the user's with a gradient of its own: a custom_vjp or custom_jvp."""
    return within_jax(x) is not None and type(x).__name__ in ("custom_vjp", "custom_jvp")


MODULES["jax"] = JaxModule
