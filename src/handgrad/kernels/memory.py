"""Arrays for kernel outputs, from memory that is used again instead of fresh pages every step."""

from __future__ import annotations

from handgrad.kernels import native

assert native is not None

#: `empty(shape, dtype)`: an uninitialised C-contiguous NumPy array, 64-byte aligned when large.
empty = native.empty
