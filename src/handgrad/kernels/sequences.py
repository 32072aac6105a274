"""Sequences (N, C, T) as images of one row, for the kernels of `conv2d` and its like."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.geometry.windows import Setting, per_axis


def as_row(values: Any) -> Any:
    """(.., T) as (.., 1, T); what is no array stays as it is."""
    if not isinstance(values, np.ndarray) or values.ndim < 3:
        return values
    return values[..., np.newaxis, :]


def as_steps(row: Array | None, wanted: Any) -> Array | None:
    """(.., 1, T) as (.., T): the caller's own array where there is one."""
    if row is None:
        return None
    return wanted if isinstance(wanted, np.ndarray) else row[..., 0, :]


def of_row(setting: Setting, down: int) -> tuple[int, int]:
    """A setting along the row, with `down` for the axis on which there is one position."""
    (along,) = per_axis(setting, 1)
    return down, along
