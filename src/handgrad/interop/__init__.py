"""Gradients that other frameworks define, as a `ForwardBackward` that the checker can run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from handgrad.forward_backward import ForwardBackward

__all__ = ["forward_backward"]


def function_of(target: Any) -> Any:
    """A framework's object that `forward_backward` takes; None for any other target."""
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        is_apply = getattr(target, "__name__", None) == "apply"
        function = getattr(target, "__self__", target) if is_apply else target
        if isinstance(function, type) and issubclass(function, torch.autograd.Function):
            return function
        if isinstance(target, torch.nn.Module):
            return target
    of_jax = type(target).__module__.partition(".")[0] in ("jax", "jaxlib")
    return target if of_jax and callable(target) else None


def forward_backward(
    target: Any, arrays: Sequence[Any], options: Mapping[str, Any] = MappingProxyType({})
) -> ForwardBackward | None:
    """A framework's object, called with these arguments; None for any other target.

    Recognised are a subclass of `torch.autograd.Function` or its `apply`, a `torch.nn.Module`, and
    what JAX makes of a function: `jax.custom_vjp`, `jax.custom_jvp`, `jax.jit`. A plain function on
    JAX arrays looks like any other function; `interop.jax.from_function` takes it.

    `options` are further arguments by name, constants all.

    Imports no framework: an object of one can only exist where it has been imported.
    """
    function = function_of(target)
    if function is None:
        return None
    torch: Any = sys.modules.get("torch")
    if torch is not None and (isinstance(function, torch.nn.Module) or _is_function(function)):
        from handgrad.interop import pytorch

        make = pytorch.from_function if _is_function(function) else pytorch.from_module
        return make(function, arrays, options=options)
    from handgrad.interop import jax

    return jax.from_function(function, arrays, options=options)


def of_callable(
    target: Any, function: Callable[..., Any], arrays: Sequence[Any]
) -> ForwardBackward:
    """A function that calls a framework's object with these arrays among other arguments."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and (isinstance(target, torch.nn.Module) or _is_function(target)):
        from handgrad.interop import pytorch

        return pytorch.from_callable(function, arrays, type(target).__name__)
    from handgrad.interop import jax

    return jax.from_function(function, arrays, getattr(target, "__name__", None))


def of_tensors(
    function: Callable[..., Any], filled: Callable[[Sequence[Any]], Any], arrays: Sequence[Any]
) -> ForwardBackward | None:
    """A function on PyTorch's tensors that gives one with a gradient; None for any other."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return None
    from handgrad.interop import pytorch

    name = getattr(function, "__name__", type(function).__name__)
    try:
        found = pytorch.from_callable(lambda *given: function(*filled(given)), arrays, name)
        y, (_, outputs) = found.forward(*(array.copy() for array in arrays))
    except Exception:  # it is no such function
        return None
    del y
    return found if any(output.requires_grad for output in outputs) else None


def _is_function(value: Any) -> bool:
    """Return whether this is a subclass of `torch.autograd.Function`."""
    torch: Any = sys.modules["torch"]
    return isinstance(value, type) and issubclass(value, torch.autograd.Function)
