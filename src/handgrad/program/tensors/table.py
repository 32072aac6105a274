"""The table of PyTorch's names: what each does to traced arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
import scipy.special

from handgrad.program.integers import is_whole
from handgrad.program.standins import shown_module

Function = TypeVar("Function", bound=Callable[..., Any])

#: Functions by the name after `torch.`, `torch.nn.functional.` or `Tensor.`; those of its other
#: modules with the module's name, such as `linalg.norm`.
TENSOR_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
#: Names that only tensors have, as methods.
TENSOR_METHODS: Final[dict[str, Callable[..., Any]]] = {}

#: NumPy and SciPy as a traced function sees them.
xp: Final = shown_module(np)
special: Final = shown_module(scipy.special)


def torch_function(*names: str) -> Callable[[Function], Function]:
    """Registers a function under PyTorch's names; its own where none is given."""

    def keep(function: Function) -> Function:
        TENSOR_FUNCTIONS.update(dict.fromkeys(names or (function.__name__,), function))
        return function

    return keep


def torch_method(*names: str) -> Callable[[Function], Function]:
    """Registers a method of tensors that is no function of PyTorch's as well."""

    def keep(function: Function) -> Function:
        TENSOR_METHODS.update(dict.fromkeys(names or (function.__name__,), function))
        return function

    return keep


def is_exactly(value: Any, number: float) -> bool:
    """True for a number of Python; to compare a traced one would hold the trace to the answer."""
    return type(value) in (int, float) and bool(value == number)


def one_tuple(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes or axes that are given one by one, or as one tuple."""
    if len(values) == 1 and not is_whole(values[0]) and isinstance(values[0], tuple | list):
        return tuple(values[0])
    return values


def axes(dim: Any) -> Any:
    """PyTorch's dim as NumPy's axis: an empty list is all."""
    return (tuple(dim) or None) if isinstance(dim, list | tuple) else dim


def times(factor: Any, x: Any) -> Any:
    """A factor of an argument such as alpha, which is one unless given."""
    return x if is_exactly(factor, 1) else factor * x


def by_channel(parameter: Any, x: Any) -> Any:
    """A parameter of the channels beside an array of them: its axis is the second."""
    return None if parameter is None else xp.reshape(parameter, (-1, *(1,) * (x.ndim - 2)))


def axis_from_0(x: Any, dim: int) -> int:
    return dim if dim >= 0 else dim + x.ndim


def along(x: Any, dim: int, key: Any) -> Any:
    """x[:, …, key], the key at an axis."""
    return x[(*(slice(None),) * axis_from_0(x, dim), key)]
