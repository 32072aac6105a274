"""JAX functions with a gradient of their own, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from handgrad.errors import ArgumentError
from handgrad.forward_backward import ForwardBackward, Nested
from handgrad.interop.arguments import FunctionArguments, bare, nested, takes_float64


def from_function(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    name: str | None = None,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> ForwardBackward:
    """A function on JAX arrays, typically a `jax.custom_vjp`, called with these arguments.

    Backward is the function that `jax.vjp` returns. Float arrays are differentiable, other arrays
    are inputs without a gradient, and everything else is a constant. Where an array is float64, JAX
    computes with 64 bits; otherwise as it is configured.

    JAX arrays have no strides and cannot be written to: inputs and dy are copied.

    Raises ArgumentError where the function cannot take so many arguments, where an argument holds
    arrays in a dict or the like, or where something other than arrays and tuples of them comes
    out; what JAX and the function raise passes through.
    """
    jax: Any = import_module("jax")
    what = name or str(getattr(function, "__name__", type(function).__name__))
    values = [np.asarray(value) if isinstance(value, jax.Array) else value for value in arrays]
    for value in values:
        held = (part for part in jax.tree.leaves(value) if part is not value)
        if any(isinstance(part, (np.ndarray, jax.Array)) for part in held):
            raise ArgumentError(
                f"{what}: a {type(value).__name__} of arrays is given; allowed: arrays, "
                "and constants without arrays"
            )
    arguments = FunctionArguments.of(what, function, values, options)
    differentiable = [_is_float(array) for array in arguments.arrays]

    def call(*inputs: Any) -> Any:
        y = function(*arguments.filled(inputs))
        return nested(what, y, lambda value: isinstance(value, jax.Array), lambda value: value)

    def forward(*inputs: Any) -> tuple[Nested, Any]:
        wide = any(np.asarray(array).dtype == np.float64 for array in inputs)
        with _precision(wide):
            # jnp.array copies: jnp.asarray may share memory that the caller changes later.
            y, vjp = jax.vjp(call, *[jax.numpy.array(array) for array in inputs])
        return nested(what, y, lambda value: isinstance(value, jax.Array), np.asarray), (vjp, wide)

    def backward(dy: Nested, cache: Any) -> Any:
        vjp, wide = cache
        with _precision(wide):
            found = vjp(_cotangent(dy))
        gradients = zip(found, differentiable, strict=True)
        return bare([np.asarray(gradient) for gradient, wanted in gradients if wanted])

    return ForwardBackward(
        name=what,
        inputs=arguments.names,
        gradients=tuple(
            key for key, wanted in zip(arguments.names, differentiable, strict=True) if wanted
        ),
        forward=forward,
        backward=backward,
        context=lambda: _precision(any(array.dtype == np.float64 for array in arguments.arrays)),
        takes_float64=takes_float64(forward, arguments.arrays),
    )


def _cotangent(dy: Nested) -> Any:
    """dy in JAX's form, where an array that is not of floats has a cotangent without values."""
    jax: Any = import_module("jax")
    if isinstance(dy, tuple):
        return tuple(_cotangent(part) for part in dy)
    if _is_float(dy):
        return jax.numpy.array(dy)
    return np.zeros(np.shape(dy), jax.dtypes.float0)


def _is_float(array: Any) -> bool:
    jax: Any = import_module("jax")
    return bool(jax.numpy.issubdtype(np.asarray(array).dtype, jax.numpy.floating))


def _precision(wide: bool) -> AbstractContextManager[Any]:
    """A context in which JAX has 64 bits, or what it is configured for."""
    jax: Any = import_module("jax")
    if not wide:
        return nullcontext()
    home = jax if hasattr(jax, "enable_x64") else jax.experimental  # in older versions
    context: AbstractContextManager[Any] = home.enable_x64(True)
    return context
