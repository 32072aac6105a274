"""Kernel of `ops.conv1d`: that of `conv2d` on images of one row."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.kernels import conv2d
from handgrad.kernels.spec import KernelSpec
from handgrad.ops.windows import Setting, per_axis


class Cache(NamedTuple):
    """The cache of the conv2d kernel."""

    conv2d: conv2d.Cache


def _as_row(values: Any) -> Any:
    """(.., T) as (.., 1, T); what is no array stays as it is."""
    if not isinstance(values, np.ndarray) or values.ndim < 3:
        return values
    return values[..., np.newaxis, :]


def _as_steps(row: Array | None, wanted: Any) -> Array | None:
    """(.., 1, T) as (.., T): the caller's own array where there is one."""
    if row is None:
        return None
    return wanted if isinstance(wanted, np.ndarray) else row[..., 0, :]


def forward(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Setting = 1,
    padding: Setting = 0,
    dilation: Setting = 1,
    groups: int = 1,
    activation: str = "identity",
) -> tuple[Array, Cache]:
    y, cache = conv2d.forward(
        _as_row(x),
        _as_row(weight),
        bias,
        stride=(1, *per_axis(stride, 1)),
        padding=(0, *per_axis(padding, 1)),
        dilation=(1, *per_axis(dilation, 1)),
        groups=groups,
        activation=activation,
    )
    return y[:, :, 0], Cache(cache)


def backward(
    dy: Array, cache: Cache, out: Any = None
) -> tuple[Array | None, Array | None, Array | None]:
    at_x, at_weight, at_bias = out or (None, None, None)
    rows = (_as_row(at_x), _as_row(at_weight), at_bias)
    dx, dweight, dbias = conv2d.backward(_as_row(dy), cache.conv2d, rows)
    return _as_steps(dx, at_x), _as_steps(dweight, at_weight), dbias


SPEC: Final = KernelSpec("conv1d", forward, backward, capturable=True)
