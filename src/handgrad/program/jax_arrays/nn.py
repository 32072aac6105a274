"""jax.nn: activations, softmax and what goes with it."""

from __future__ import annotations

from typing import Any, Final

from handgrad.program.jax_arrays.table import JAX_FUNCTIONS, jax_function
from handgrad.program.primitives.table import refuse
from handgrad.program.tensors import functional, methods
from handgrad.program.tensors.table import special, xp

#: Those that PyTorch has as well, with the arguments in the same order.
_SAME: Final = (
    *("relu", "relu6", "silu", "mish", "softplus", "elu", "celu", "selu", "glu", "tanhshrink"),
)
JAX_FUNCTIONS.update({f"nn.{name}": getattr(functional, name) for name in _SAME})
JAX_FUNCTIONS.update(
    {
        "nn.swish": functional.silu,
        "nn.soft_sign": functional.softsign,
        "nn.hard_sigmoid": functional.hardsigmoid,
        "nn.hard_silu": functional.hardswish,
        "nn.hard_swish": functional.hardswish,
        "nn.hard_tanh": functional.hardtanh,
        "nn.log_sigmoid": special.log_expit,
        "nn.sigmoid": special.expit,
        "nn.tanh": xp.tanh,
        "lax.logistic": special.expit,
        "lax.stop_gradient": methods.detach,
    }
)


@jax_function("nn.leaky_relu")
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    return xp.where(x >= 0, x, negative_slope * x)


@jax_function("nn.gelu")
def gelu(x: Any, approximate: bool = True) -> Any:
    return functional.gelu(x, approximate="tanh" if approximate else "none")


@jax_function("nn.squareplus")
def squareplus(x: Any, b: Any = 4) -> Any:
    return (x + xp.sqrt(x * x + b)) / 2


@jax_function("nn.identity")
def identity(x: Any) -> Any:
    return x


@jax_function("nn.sparse_plus")
def sparse_plus(x: Any) -> Any:
    return xp.where(x <= -1, 0.0, xp.where(x >= 1, x, (x + 1) ** 2 / 4))


@jax_function("nn.softmax", "scipy.special.softmax")
def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    shown = x if where is None else xp.where(where, x, -xp.inf)
    return special.softmax(shown, axis=axis)


@jax_function("nn.log_softmax", "scipy.special.log_softmax")
def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    shown = x if where is None else xp.where(where, x, -xp.inf)
    return special.log_softmax(shown, axis=axis)


@jax_function("nn.logsumexp", "scipy.special.logsumexp")
def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    if return_sign:
        refuse("logsumexp with return_sign is not known")
    shown = a if where is None else xp.where(where, a, -xp.inf)
    named = {} if b is None else {"b": b}
    return special.logsumexp(shown, axis=axis, keepdims=keepdims, **named)


@jax_function("nn.one_hot")
def one_hot(x: Any, num_classes: Any, *, dtype: Any = None, axis: int = -1) -> Any:
    if axis != -1:
        refuse("one_hot along another axis than the last is not known; write moveaxis")
    return (x[..., None] == xp.arange(num_classes)).astype(float)


@jax_function("nn.standardize")
def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """The algorithm decides how a variance is rounded, and not what it is."""
    if where is not None:
        refuse("standardize with where= is not known")
    mean = xp.mean(x, axis=axis, keepdims=True) if mean is None else mean
    centered = x - mean
    if variance is None:
        variance = xp.mean(centered * centered, axis=axis, keepdims=True)
    return centered / xp.sqrt(variance + epsilon)
