"""Rotary positions: pairs of features turned by an angle that grows with the position."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ShapeError
from handgrad.geometry.positions import angles
from handgrad.ops.arguments import check_positions

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The cosine and sine of every angle; x is not needed, because a rotation is linear."""

    cos: Array
    sin: Array


def validate(
    x: Array,
    *,
    offset: int = 0,
    base: float = 10000.0,
    frequencies: tuple[float, ...] | None = None,
) -> None:
    if len(x.shape) < 2 or x.shape[-1] % 2 != 0:
        raise ShapeError(
            f"rotary: x has shape {tuple(x.shape)}; allowed: (..., T, d) with an even d"
        )
    check_positions("rotary", x, offset, base)
    if frequencies is not None and len(frequencies) != x.shape[-1] // 2:
        raise ShapeError(
            f"rotary: frequencies has {len(frequencies)} values; allowed: "
            f"{x.shape[-1] // 2}, one for each pair of features"
        )


@operation
def forward(
    x: Float[Array, "*batch T d"],
    *,
    offset: int = 0,
    base: float = 10000.0,
    frequencies: tuple[float, ...] | None = None,
) -> tuple[Float[Array, "*batch T d"], Cache]:
    """Rotary positions for the queries and keys of attention.

    Forward:  y_i = x_i cos θ − x_i+d/2 sin θ,  y_i+d/2 = x_i+d/2 cos θ + x_i sin θ
              for i < d/2,  θ = (offset + t) ω_i at the step t,  ω_i = base^(−2i/d)
    Backward: dx_i = dy_i cos θ + dy_i+d/2 sin θ,  dx_i+d/2 = dy_i+d/2 cos θ − dy_i sin θ

    The product of a query and a key that were both turned depends only on the distance of their
    positions. `offset` is the position of the first step, for a sequence that continues an earlier
    call. `frequencies` are other ω, such as those that Llama 3.1 stretches for longer texts; then
    `base` does not count. The angles are computed in float64, their cosines and sines rounded to
    the type of x.

    Shapes: x, y (..., T, d) with an even d, such as (N, H, T, d).
    Raises ShapeError where x is of another shape and unless there are d/2 frequencies,
    ArgumentError unless base > 0.
    Source: Su et al., RoFormer: enhanced transformer with rotary position embedding (2021), with
    feature i paired with i + d/2 as in GPT-NeoX and Llama, where the paper pairs 2i with 2i + 1.
    """
    xp = array_namespace(x)
    half = x.shape[-1] // 2
    theta = angles(x.shape[-2], x.shape[-1], offset=offset, base=base, frequencies=frequencies)
    cos = xp.asarray(np.cos(theta), dtype=x.dtype, device=device(x))
    sin = xp.asarray(np.sin(theta), dtype=x.dtype, device=device(x))
    first = x[..., :half]
    second = x[..., half:]
    y = xp.concat([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return y, Cache(cos, sin)


@operation
def backward(dy: Float[Array, "*batch T d"], cache: Cache) -> Float[Array, "*batch T d"]:
    """dx_i = dy_i cos θ + dy_i+d/2 sin θ,  dx_i+d/2 = dy_i+d/2 cos θ − dy_i sin θ: turned back."""
    cos, sin = cache
    xp = array_namespace(dy)
    half = dy.shape[-1] // 2
    first = dy[..., :half]
    second = dy[..., half:]
    dx = xp.concat([first * cos + second * sin, second * cos - first * sin], axis=-1)
    return dx
