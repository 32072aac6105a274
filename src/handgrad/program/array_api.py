"""Functions of array_api_compat as the traced function sees them: the namespace is NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import array_api_compat
import numpy as np

from handgrad.program.standins import shown_module


class _Namespace:
    """NumPy with the array API's arguments: where an array is does not matter here."""

    def __getattr__(self, name: str) -> Any:
        own = getattr(shown_module(np), name)
        if not callable(own) or isinstance(own, type):
            return own

        def function(*args: Any, device: Any = None, **kwargs: Any) -> Any:
            return own(*args, **kwargs)

        return function


def _namespace(*_arrays: Any, **_options: Any) -> Any:
    return _Namespace()


def _device(_array: Any) -> None:
    """Where a traced array is: NumPy's functions take None for it."""


STAND_INS: Final[dict[Any, Callable[..., Any]]] = {
    array_api_compat.array_namespace: _namespace,
    array_api_compat.device: _device,
    array_api_compat.size: lambda array: array.size,
}
