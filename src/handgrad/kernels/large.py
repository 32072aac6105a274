"""Arrays large enough for a native function where NumPy has one of its own."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from handgrad.dispatch import get_engine
from handgrad.kernels import native

#: Below so many values NumPy's own copy or sum is as quick.
_WORTH_IT: Final = 20000


def is_large(array: Any, dtype: Any) -> bool:
    """Return whether kernels are on and this is a large aligned NumPy array of this type."""
    return is_plain(array, dtype) and array.size >= _WORTH_IT


def is_plain(array: Any, dtype: Any) -> bool:
    """The same of any size: for what a capture is to have, as it cannot have NumPy's sums."""
    return (
        native is not None
        and get_engine() != "reference"
        and type(array) is np.ndarray
        and array.dtype in (np.float32, np.float64)
        and array.dtype == dtype
        and array.flags.aligned
    )
