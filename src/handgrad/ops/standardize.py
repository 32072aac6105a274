"""Standardize: mean 0 and variance 1 over the chosen axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.axes import chosen_axes
from handgrad.ops.arguments import check_axis, check_eps

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The output and 1/√(variance + eps), in which backward is written; the mean drops out."""

    y: Array
    inv_std: Array
    axes: tuple[int, ...]


def validate(x: Array, *, axes: int | tuple[int, ...] | None = (-2, -1), eps: float = 1e-5) -> None:
    if axes is None and len(x.shape) < 2:
        raise ShapeError(
            f"standardize: x has shape {tuple(x.shape)} and axes are None; allowed: an axis beside "
            "the first"
        )
    several = chosen_axes(axes, len(x.shape))
    for axis in several:
        check_axis("standardize", axis, x)
    if len({axis % len(x.shape) for axis in several}) != len(several):
        raise ArgumentError(f"standardize: axes are {shown(several)}; allowed: each axis once")
    check_eps("standardize", eps)


@operation
def forward(
    x: Float[Array, "*shape"],
    *,
    axes: int | tuple[int, ...] | None = (-2, -1),
    eps: float = 1e-5,
) -> tuple[Float[Array, "*shape"], Cache]:
    """Standardisation over `axes`: the whole matrix of each sample by default, or any axes.

    None takes all axes but the first: each sample of a batch as a whole, whatever its rank.

    Forward:  y = (x − μ)/√(σ² + eps),  μ and σ² the mean and population variance over `axes`
    Backward: dx = (dy − mean(dy) − y mean(dy y))/√(σ² + eps)   (means over `axes`)

    A constant x gives 0 as long as eps > 0.

    Shapes: x, y any shape with these axes; (..., n, m) for the default, (N, ...) for None.
    Raises ArgumentError or ShapeError where there is no such axis, nothing along it, or eps < 0.
    Source: Careddu, Custom Neural Networks (undated), sections 1 and 2, with the eps that they
    leave out.
    """
    xp = array_namespace(x)
    over = chosen_axes(axes, len(x.shape))
    mean = xp.mean(x, axis=over, keepdims=True)
    centred = x - mean
    variance = xp.mean(centred * centred, axis=over, keepdims=True)
    inv_std = 1.0 / xp.sqrt(variance + eps)
    y = centred * inv_std
    return y, Cache(y, inv_std, over)


@operation
def backward(dy: Float[Array, "*shape"], cache: Cache) -> Float[Array, "*shape"]:
    """dx = (dy − mean(dy) − y mean(dy y))/√(σ² + eps)."""
    y, inv_std, axes = cache
    xp = array_namespace(dy)
    mean_dy = xp.mean(dy, axis=axes, keepdims=True)
    mean_dy_y = xp.mean(dy * y, axis=axes, keepdims=True)
    dx = (dy - mean_dy - y * mean_dy_y) * inv_std
    return dx
