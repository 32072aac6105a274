"""Arrays that a target makes in float32, as `np.empty(shape, dtype="f")`, made in float64 instead.

Such a buffer rounds what a float64 call keeps in it, and differences then know little of what is
right. With wide buffers the same formulas are judged, and their causes searched, in float64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np

from handgrad.forward_backward import ForwardBackward

#: The functions that make arrays of a type, with the position at which this may stand.
_MAKERS: Final = {
    **dict.fromkeys(("empty", "zeros", "ones", "array", "asarray", "empty_like", "zeros_like"), 1),
    **dict.fromkeys(("ones_like", "full", "full_like", "eye"), 2),
}
_NOTE: Final = "arrays that it makes in float32 are judged as if they were of float64"


@contextmanager
def wide_buffers() -> Iterator[None]:
    """NumPy with float64 wherever an array of float32 is asked for by name."""
    saved = {name: getattr(np, name) for name in _MAKERS}
    try:
        for name, position in _MAKERS.items():
            setattr(np, name, _wide(saved[name], position))
        yield
    finally:
        for name, function in saved.items():
            setattr(np, name, function)


def _wide(function: Callable[..., Any], position: int) -> Callable[..., Any]:
    @functools.wraps(function)
    def made(*given: Any, **named: Any) -> Any:
        if _is_narrow(named.get("dtype")):
            named["dtype"] = np.float64
        if len(given) > position and _is_narrow(given[position]):
            given = (*given[:position], np.float64, *given[position + 1 :])
        return function(*given, **named)

    return made


def _is_narrow(dtype: Any) -> bool:
    return dtype is np.float32 or (isinstance(dtype, str) and dtype in ("f", "f4", "float32"))


def with_wide_buffers(functions: ForwardBackward) -> ForwardBackward:
    """The same functions, each run with wide buffers."""

    def forward(*arrays: Any) -> Any:
        with wide_buffers():
            return functions.forward(*arrays)

    def backward(dy: Any, cache: Any) -> Any:
        with wide_buffers():
            return functions.backward(dy, cache)

    @contextmanager
    def context() -> Iterator[None]:
        with functions.context(), wide_buffers():
            yield

    return replace(
        functions,
        forward=forward,
        backward=backward,
        context=context,
        notes=(*functions.notes, _NOTE),
    )
