"""A kernel's specification: all that calls of an op need of its kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

#: The ways arrays may lie in memory for a kernel to read them in place: in C's order, with the last
#: axis contiguous and the others at any strides, or at any strides. As core/binding/array.cpp
#: numbers them.
CONTIGUOUS: Final = 0
ROWS: Final = 1
STRIDED: Final = 2


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """One op's kernel, declared as `SPEC` at the end of `handgrad/kernels/<op>.py`.

    `forward` takes the op's arguments and returns y and a cache of its own; `backward(dy, cache,
    out)` returns the gradients, written into the arrays of `out`, if that is not None. Both get
    NumPy arrays of one float type, checked by the op's `validate`.

    - layout: arrays that lie in memory so come as they are, others as a copy in C's order.
    - adds_residual_forward: `forward` also takes `residual` and adds it to y as it writes.
    - adds_residual_backward: `backward` does, and adds it to the first gradient.
    - overwrites_cache: backward may write its gradient over the first array of the cache.
    - capturable: forward and backward compute by native calls alone, on no random numbers and by
      no branch on values, so that these calls can be replayed on other values. A native call that
      returns a number, such as a sum, invalidates the capture by itself.
    - forward_capturable: the same of forward alone; where it does more, as for random numbers, it
      invalidates the capture itself.
    """

    op: str
    forward: Callable[..., tuple[Any, Any]]
    backward: Callable[..., Any]
    layout: int = CONTIGUOUS
    adds_residual_forward: bool = False
    adds_residual_backward: bool = False
    overwrites_cache: bool = False
    capturable: bool = False
    forward_capturable: bool = False
