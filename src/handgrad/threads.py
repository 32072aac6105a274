"""How many threads the kernels use: every core unless told otherwise. Results never differ.

`HANDGRAD_THREADS` is read with the kernels, in `handgrad.kernels`.
"""

from __future__ import annotations

from handgrad import kernels
from handgrad.errors import ArgumentError


def get_threads() -> int:
    """The number of threads of the kernels, the calling one included; 1 without kernels."""
    return 1 if kernels.native is None else int(kernels.native.get_threads())


def set_threads(count: int) -> None:
    """Use this many threads from now on. Raises ArgumentError unless count is 1 or more.

    Without kernels the reference runs as NumPy does and this changes nothing.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError(f"threads is {count!r}; allowed: a whole number from 1")
    if kernels.native is not None:
        kernels.native.set_threads(count)
