"""PyTorch's tensors made in float64 where no type is asked for, as NumPy's arrays are.

What a user's code makes beside its inputs, such as weights and buffers, is of PyTorch's default
type, float32, which does not meet arrays of float64 and knows less than differences need.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def default_type(dtype: str = "float64") -> Iterator[None]:
    """Tensors in float64 by default, or another type, where PyTorch has been imported."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        yield
    finally:
        torch.set_default_dtype(before)
