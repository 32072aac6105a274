"""Memory that the kernels keep for their next arrays."""

from __future__ import annotations

from handgrad import kernels


def release_memory() -> None:
    """Give the memory that is kept for later arrays, and used by none now, back to the system.

    Kernels do so by themselves within some seconds of other work: of every size no more is kept
    than was in use at once lately. A program that stops computing after its peak calls this.
    """
    if kernels.native is not None:
        kernels.native.release_memory()
