"""Functions of NumPy that trust their arguments, safe for whatever a changed line hands them.

NumPy reads beyond its memory where `np.add.at` gets values of more axes than the places that they
go to, and where `as_strided` gets steps that lead out of the array, and takes the process with it.
Lines that a search has changed do both; here they are exceptions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.lib import stride_tricks

_UFUNCS: Final = ("add", "subtract", "multiply", "maximum", "minimum")

_as_strided = stride_tricks.as_strided


class _Checked:
    """A function of NumPy's whose `at` looks at the axes first."""

    def __init__(self, ufunc: Any) -> None:
        self._ufunc = ufunc

    def __call__(self, *arrays: Any, **options: Any) -> Any:
        return self._ufunc(*arrays, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def at(self, array: Any, indices: Any, *values: Any) -> None:
        most = np.ndim(array[indices])
        if any(np.ndim(each) > most for each in values):
            raise ValueError(f"values of more than {most} axes")
        self._ufunc.at(array, indices, *values)


def _within(x: Any, shape: Any = None, strides: Any = None, **options: Any) -> Any:
    """`as_strided`, of a view that lies in the memory of the array."""
    x = np.asarray(x)
    sizes = x.shape if shape is None else tuple(shape)
    steps = x.strides if strides is None else tuple(strides)
    owner: Any = x
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    ends = [int(step) * (int(n) - 1) for n, step in zip(sizes, steps, strict=True)]
    first, last = np.lib.array_utils.byte_bounds(owner)
    start = x.__array_interface__["data"][0]
    low = start + sum(min(end, 0) for end in ends)
    high = start + sum(max(end, 0) for end in ends) + x.itemsize
    if 0 not in sizes and not (first <= low and high <= last):
        raise ValueError("a view beyond the array")
    return _as_strided(x, shape, strides, **options)


@contextmanager
def checked_memory() -> Iterator[None]:
    """Have NumPy look at what is scattered and strided, for whoever asks it for these functions."""
    own = {name: getattr(np, name) for name in _UFUNCS}
    vars(np).update({name: _Checked(each) for name, each in own.items()})
    vars(stride_tricks)["as_strided"] = _within
    try:
        yield
    finally:
        vars(np).update(own)
        vars(stride_tricks)["as_strided"] = _as_strided
