"""Arrays of other types than the one that computes: converted, with a warning that says so once."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from handgrad import kernels
from handgrad.dispatch.values import remedy
from handgrad.errors import ArgumentError, HandgradWarning

_PACKAGE: Final = str(Path(__file__).parent)


def converted(owner: Any, name: str, x: NDArray[Any], own: np.dtype[Any], of: str) -> NDArray[Any]:
    """The array in its owner's type, with a HandgradWarning once for each type it is given in.

    of: the words for what is of that type, such as "the parameters".
    Raises ArgumentError for a number that the owner's type cannot hold.
    """
    if x.dtype.newbyteorder("=") == own:
        return x
    kernels.invalidate_capture("an array was converted to the type of the layer or loss")
    kind = type(owner).__name__
    try:
        with np.errstate(over="raise"):
            found = x.astype(own)
    except FloatingPointError:
        raise ArgumentError(
            f"{kind}: {name} has a number that {own} cannot hold; allowed: up to "
            f"{np.finfo(own).max:.3g}"
        ) from None
    warned_of = getattr(owner, "_warned_of", ())
    if x.dtype not in warned_of:
        owner._warned_of = (*warned_of, x.dtype)
        line = remedy(name, x, own, "to convert once, write")
        warnings.warn(
            f"{kind}: {name} is of {x.dtype} and {of} of {own}, so every call converts it{line}",
            HandgradWarning,
            stacklevel=_callers_level(),
        )
    return found


def _callers_level() -> int:
    """The `stacklevel` of a warning that points to the first line outside of handgrad."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
