"""Kernel of `optimizers.clipping`."""

from __future__ import annotations

from typing import Final

from handgrad.kernels import native

assert native is not None

#: `sum_of_squares(array)`: Σ x² of a C-contiguous array, in float64 and in one fixed order.
sum_of_squares: Final = native.sum_of_squares
