"""`np.add.at` and its like, safe for whatever a changed line hands them.

NumPy reads beyond its memory where the values have more axes than the places that they go to, and
takes the process with it. Lines that a search has changed do that; here it is an exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

_UFUNCS: Final = ("add", "subtract", "multiply", "maximum", "minimum")


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


@contextmanager
def checked_scatters() -> Iterator[None]:
    """Have NumPy check what is scattered, for whoever asks it for one of these functions."""
    own = {name: getattr(np, name) for name in _UFUNCS}
    vars(np).update({name: _Checked(each) for name, each in own.items()})
    try:
        yield
    finally:
        vars(np).update(own)
