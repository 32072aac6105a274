"""The activation at the end of a fused op (dense, convolutions): by name, forward and gradient.

The formulas are those of the activation ops; nothing is written twice. A fused op keeps `a`, the
value before the activation, and the gradient recomputes from it what it needs.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from handgrad.arrays import Array
from handgrad.ops import erf, gelu, leaky_relu, relu, sigmoid, silu, sin, tanh
from handgrad.ops.arguments import check_choice
from handgrad.ops.covariances import Values, bounded, variances

if TYPE_CHECKING:
    from jaxtyping import Float

_OPS: Final[dict[str, ModuleType]] = {
    "relu": relu,
    "leaky_relu": leaky_relu,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "gelu": gelu,
    "silu": silu,
    "erf": erf,
    "sin": sin,
}

#: Every name a fused op takes as `activation=`.
ACTIVATIONS: Final = ("identity", *_OPS)


def check_activation(op: str, activation: str, approximate: str = "none") -> None:
    """For the `validate` of a fused op: raise ArgumentError for a name that is not allowed."""
    check_choice(op, "activation", activation, ACTIVATIONS)
    check_choice(op, "approximate", approximate, gelu.APPROXIMATIONS)


def own_options(activation: str, negative_slope: float, approximate: str) -> dict[str, Any]:
    """The keyword arguments that belong to this activation."""
    if activation == "leaky_relu":
        return {"negative_slope": negative_slope}
    if activation == "gelu":
        return {"approximate": approximate}
    return {}


def activate(
    a: Float[Array, "*shape"],
    activation: str,
    *,
    negative_slope: float = 0.01,
    approximate: str = "none",
) -> Float[Array, "*shape"]:
    """h = f(a); `negative_slope` counts for leaky_relu only, `approximate` for gelu only.

    h is an array of its own: what a cache keeps and what the caller gets are never the same memory
    where nothing is computed.
    """
    if activation == "identity":
        return array_namespace(a).asarray(a, copy=True)
    options = own_options(activation, negative_slope, approximate)
    h, _ = _OPS[activation].forward.reference(a, **options)
    return h


def activation_gradient(
    dh: Float[Array, "*shape"],
    a: Float[Array, "*shape"],
    activation: str,
    *,
    negative_slope: float = 0.01,
    approximate: str = "none",
) -> Float[Array, "*shape"]:
    """da = dh f′(a), from the value a before the activation."""
    if activation == "identity":
        return dh
    options = own_options(activation, negative_slope, approximate)
    _, cache = _OPS[activation].forward.reference(a, **options)
    return _OPS[activation].backward.reference(dh, cache)


def v_transform(
    activation: str,
    k12: ArrayLike,
    k11: ArrayLike,
    k22: ArrayLike,
    *,
    derivative: bool = False,
    negative_slope: float = 0.01,
    approximate: str = "none",
) -> Values:
    """E[f(z₁) f(z₂)] of Gaussian values with these covariances, or E[f′(z₁) f′(z₂)].

    k₁₁ and k₂₂ may have fewer axes than k₁₂, or axes of length 1, which saves time.
    Raises ArgumentError for an unknown activation.
    """
    check_activation("v_transform", activation, approximate)
    if activation == "identity":
        k12, _ = bounded(k12, variances(k11), variances(k22))
        return np.ones_like(k12) if derivative else k12
    options = own_options(activation, negative_slope, approximate)
    op = _OPS[activation]
    transform = op.v_transform_derivative if derivative else op.v_transform
    value: Values = transform(k12, k11, k22, **options)
    return value


def gaussian_mean(
    activation: str, k11: ArrayLike, *, negative_slope: float = 0.01, approximate: str = "none"
) -> Values:
    """E[f(z₁)] of a Gaussian value with mean 0 and variance k₁₁.

    Raises ArgumentError for an unknown activation.
    """
    check_activation("gaussian_mean", activation, approximate)
    if activation == "identity":
        return np.zeros_like(variances(k11))
    options = own_options(activation, negative_slope, approximate)
    mean: Values = _OPS[activation].gaussian_mean(k11, **options)
    return mean
