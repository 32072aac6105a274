"""Kernel of `ops.linear`: that of `dense` with the identity as its activation."""

from __future__ import annotations

from handgrad.arrays import Array
from handgrad.kernels import dense
from handgrad.kernels.dense import Cache, backward

__all__ = ["Cache", "backward", "forward"]


def forward(
    x: Array, weight: Array, bias: Array | None = None, *, plus: Array | None = None
) -> tuple[Array, Cache]:
    return dense.forward(x, weight, bias, plus=plus)
