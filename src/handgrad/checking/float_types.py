"""The type of floats in which a target computes, whatever the type that it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from handgrad.checking.functions import Arrays
from handgrad.checking.trial import leaves
from handgrad.checking.wide_buffers import with_wide_buffers
from handgrad.forward_backward import ForwardBackward

#: Relative steps below those of float32, and above them.
_FINE: Final = 2.0**-28
_COARSE: Final = 2.0**-20
#: Of y: beyond the rounding of float64 in a sum that takes an input away again.
_MOVED: Final = 2.0**-40


def computes_as(functions: ForwardBackward, arrays: Arrays) -> ForwardBackward:
    """The same, known to compute in float32 where float64 is refused or rounded on the way.

    What tells is a value that y does not follow in steps finer than those of float32, whatever the
    type that comes out. Where only arrays that it makes are of float32, it is given wide ones.
    """
    if not functions.takes_float64 or not _is_narrow(functions, arrays):
        return functions
    wider = with_wide_buffers(functions)
    return replace(functions, takes_float64=False) if _is_narrow(wider, arrays) else wider


def _is_narrow(functions: ForwardBackward, arrays: Arrays) -> bool:
    """Return whether y is of float32, or as coarse as that."""

    def outputs(given: Sequence[Any]) -> list[np.ndarray] | None:
        """The leaves of y; None where forward raises (reported elsewhere)."""
        try:
            return list(leaves(functions.forward(*given)[0]))
        except Exception:
            return None

    def types(found: list[np.ndarray] | None) -> set[Any] | None:
        return None if found is None else {x.dtype for x in found if x.dtype.kind == "f"}

    given = [np.asarray(arrays[name]) for name in functions.inputs]
    narrow = {np.dtype(np.float32)}
    wide = outputs([_as_type(x, np.float64) for x in given])
    if wide is None:
        return types(outputs([_as_type(x, np.float32) for x in given])) == narrow
    return types(wide) == narrow or any(
        _is_rounded(outputs, given, i, wide) for i, x in enumerate(given) if x.dtype.kind == "f"
    )


def _is_rounded(
    outputs: Callable[[Sequence[Any]], list[np.ndarray] | None],
    given: Sequence[np.ndarray],
    position: int,
    y: list[np.ndarray],
) -> bool:
    """Return whether y stays the same to the bit in fine steps of an input, and moves in coarse.

    A float32 holds its value while it moves by less than half a unit in the last place. A y that
    does not depend on the input, as on the bias of an attention's keys, moves by rounding alone.
    """

    is_finite = all(each.dtype.kind == "f" and np.isfinite(each).all() for each in y)
    if not np.any(given[position]) or not is_finite:
        return False
    # From the middle of what one float32 stands for.
    middle = given[position].astype(np.float32).astype(np.float64)

    def after(step: float) -> list[np.ndarray] | None:
        copies = map(np.array, given)
        return outputs(
            [middle * (1.0 + step) if i == position else x for i, x in enumerate(copies)]
        )

    start = after(0.0)

    def moved(step: float) -> float:
        """The largest change of y, as a part of the largest y of its array."""
        end = after(step)
        if not start or end is None:
            return np.nan
        return max(_change(a, b) for a, b in zip(start, end, strict=True))

    return moved(_FINE) == 0.0 and moved(_COARSE) > _MOVED


def _change(start: np.ndarray, end: np.ndarray) -> float:
    if start.shape != end.shape:
        return np.nan
    with np.errstate(all="ignore"):
        size = float(np.max(np.abs(start), initial=0.0))
        return float(np.max(np.abs(end - start), initial=0.0)) / (size or 1.0)


def _as_type(x: np.ndarray, dtype: Any) -> np.ndarray:
    return np.array(x, dtype=dtype if x.dtype.kind == "f" else None)


def in_float64(functions: ForwardBackward) -> ForwardBackward:
    """Functions of float32 for arrays of float64: converted on the way in and out."""
    if functions.takes_float64:
        return functions

    def converted(nested: Any, dtype: Any) -> Any:
        if isinstance(nested, tuple | list):
            return tuple(converted(part, dtype) for part in nested)
        is_floats = isinstance(nested, np.ndarray | np.generic) and nested.dtype.kind == "f"
        return nested.astype(dtype) if is_floats else nested

    def forward(*arrays: Any) -> tuple[Any, Any]:
        y, cache = functions.forward(*converted(arrays, np.float32))
        return converted(y, np.float64), cache

    def backward(dy: Any, cache: Any) -> Any:
        return converted(functions.backward(converted(dy, np.float32), cache), np.float64)

    return replace(functions, forward=forward, backward=backward)
