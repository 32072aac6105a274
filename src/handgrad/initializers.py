"""First values of parameters: every draw comes from the generator that is passed in.

An initializer is called as `initializer(shape, rng, dtype=...)`; fix its other arguments with
`functools.partial`. Fans are counted as PyTorch counts them: shape[1] · k inputs and shape[0] · k
outputs, where k is the number of positions in the kernel; weights have two axes or more.

Source: Glorot, Bengio, Understanding the difficulty of training deep feedforward neural networks
(2010), for Xavier; He et al., Delving deep into rectifiers: surpassing human-level performance on
ImageNet classification (2015), for He; Saxe, McClelland, Ganguli, Exact solutions to the nonlinear
dynamics of learning in deep linear neural networks (2014), for orthogonal.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from handgrad.errors import ArgumentError, ShapeError
from handgrad.suggestions import suggesting

__all__ = [
    "GAINS",
    "Initializer",
    "constant",
    "fans",
    "for_activation",
    "he_normal",
    "he_uniform",
    "normal",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__)

Shape = tuple[int, ...]
Initializer: TypeAlias = Callable[..., NDArray[Any]]

#: Factors that keep the scale of a signal through the activation, as PyTorch's `calculate_gain`;
#: GELU and SiLU, which it leaves out, count as ReLU, and erf and sin have 1/√E[f²(z)], z ~ N(0, 1).
GAINS: Final = {
    "identity": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "leaky_relu": math.sqrt(2 / (1 + 0.01**2)),
    "gelu": math.sqrt(2),
    "silu": math.sqrt(2),
    "erf": 1 / math.sqrt(2 / math.pi * math.asin(2 / 3)),
    "sin": 1 / math.sqrt(math.exp(-1) * math.sinh(1)),
}

_RELU_LIKE: Final = frozenset({"relu", "leaky_relu", "gelu", "silu"})


def fans(shape: Shape) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight of this shape. Raises ShapeError below two axes."""
    if len(shape) < 2:
        raise ShapeError(f"initializers: weight has shape {shape}; allowed: two axes or more")
    positions = math.prod(shape[2:])
    return shape[1] * positions, shape[0] * positions


def variance(initializer: Initializer, shape: Shape) -> float:
    """The variance of one entry that an initializer draws for this shape.

    Raises ArgumentError for one that is not of this module, or draws entries that hang together.
    """
    given: dict[str, Any] = {}
    function: Any = initializer
    while isinstance(function, functools.partial):
        given = {**function.keywords, **given}
        function = function.func
    gain = given.get("gain", GAINS["relu"] if function in (he_uniform, he_normal) else 1.0)
    if function in (xavier_uniform, xavier_normal):
        return float(gain**2 * 2.0 / max(sum(fans(shape)), 1))
    if function in (he_uniform, he_normal):
        return float(gain**2 / _fan(shape, given.get("mode", "fan_in")))
    if function is normal:
        return float(given.get("std", 1.0) ** 2)
    if function is uniform:
        return float(given.get("bound", 1.0) ** 2 / 3.0)
    if function is truncated_normal:
        bound = given.get("bound", 2.0)
        density = math.exp(-0.5 * bound**2) / math.sqrt(2.0 * math.pi)
        inside = math.erf(bound / math.sqrt(2.0))
        return float(given.get("std", 1.0) ** 2 * (1.0 - 2.0 * bound * density / inside))
    if function in (constant, zeros):
        return 0.0
    name = getattr(function, "__name__", type(function).__name__)
    raise ArgumentError(
        f"initializers: the variance of {name} is not known; allowed: xavier_uniform, "
        "xavier_normal, he_uniform, he_normal, normal, uniform, truncated_normal, constant, zeros"
    )


def for_activation(activation: str) -> Initializer:
    """The default of Dense and the convolutions: He uniform before ReLU, leaky ReLU, GELU and SiLU,
    Xavier uniform with gain 1 before everything else."""
    if activation in _RELU_LIKE:
        return functools.partial(he_uniform, gain=GAINS[activation])
    return xavier_uniform


def xavier_uniform(
    shape: Shape, rng: np.random.Generator, *, gain: float = 1.0, dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    """U(−a, a) with a = gain · √(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6 / max(sum(fans(shape)), 1))
    return rng.uniform(-bound, bound, shape).astype(dtype)


def xavier_normal(
    shape: Shape, rng: np.random.Generator, *, gain: float = 1.0, dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    """N(0, σ²) with σ = gain · √(2 / (fan_in + fan_out))."""
    std = gain * math.sqrt(2 / max(sum(fans(shape)), 1))
    return rng.normal(0.0, std, shape).astype(dtype)


def he_uniform(
    shape: Shape,
    rng: np.random.Generator,
    *,
    gain: float = GAINS["relu"],
    mode: str = "fan_in",
    dtype: DTypeLike = np.float32,
) -> NDArray[Any]:
    """U(−a, a) with a = gain · √(3 / fan)."""
    bound = gain * math.sqrt(3 / _fan(shape, mode))
    return rng.uniform(-bound, bound, shape).astype(dtype)


def he_normal(
    shape: Shape,
    rng: np.random.Generator,
    *,
    gain: float = GAINS["relu"],
    mode: str = "fan_in",
    dtype: DTypeLike = np.float32,
) -> NDArray[Any]:
    """N(0, σ²) with σ = gain / √fan."""
    std = gain / math.sqrt(_fan(shape, mode))
    return rng.normal(0.0, std, shape).astype(dtype)


def _fan(shape: Shape, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"initializers: mode is {mode!r}; allowed: fan_in, fan_out")
    return max(fans(shape)[mode == "fan_out"], 1)


def normal(
    shape: Shape,
    rng: np.random.Generator,
    *,
    mean: float = 0.0,
    std: float = 1.0,
    dtype: DTypeLike = np.float32,
) -> NDArray[Any]:
    """N(mean, std²)."""
    return rng.normal(mean, std, shape).astype(dtype)


def uniform(
    shape: Shape, rng: np.random.Generator, *, bound: float = 1.0, dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    """U(−bound, bound)."""
    return rng.uniform(-bound, bound, shape).astype(dtype)


def truncated_normal(
    shape: Shape,
    rng: np.random.Generator,
    *,
    mean: float = 0.0,
    std: float = 1.0,
    bound: float = 2.0,
    dtype: DTypeLike = np.float32,
) -> NDArray[Any]:
    """N(mean, std²) with every draw further than `bound` standard deviations from the mean redrawn.

    PyTorch's `trunc_normal_` takes its limits in absolute values instead. Raises ArgumentError for
    a bound that is not above 0.
    """
    if not bound > 0:
        raise ArgumentError(f"truncated_normal: bound is {bound}; allowed: more than 0")
    values = rng.standard_normal(shape)
    outside = np.abs(values) > bound
    while outside.any():
        values[outside] = rng.standard_normal(int(outside.sum()))
        outside = np.abs(values) > bound
    return np.asarray(mean + std * values).astype(dtype)


def orthogonal(
    shape: Shape, rng: np.random.Generator, *, gain: float = 1.0, dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    """gain · Q, where Q as a (shape[0], rest) matrix has orthonormal rows or columns, whichever are
    fewer; uniform over such matrices, because the signs of R's diagonal are moved into Q."""
    fans(shape)
    rows, columns = shape[0], math.prod(shape[1:])
    q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
    q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)
    matrix = q if rows >= columns else q.T
    return (gain * matrix).reshape(shape).astype(dtype)


def constant(
    shape: Shape,
    rng: np.random.Generator | None = None,
    *,
    value: float,
    dtype: DTypeLike = np.float32,
) -> NDArray[Any]:
    """The same value everywhere; no draw is made."""
    return np.full(shape, value, dtype=dtype)


def zeros(
    shape: Shape, rng: np.random.Generator | None = None, *, dtype: DTypeLike = np.float32
) -> NDArray[Any]:
    """0 everywhere; no draw is made."""
    return np.zeros(shape, dtype=dtype)
