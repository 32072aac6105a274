"""Operators and methods of arrays on tracers, in terms of NumPy's functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from handgrad.program.integers import is_whole


class Operators(ABC):
    """Operators and methods of arrays; `apply` does a function of NumPy."""

    @abstractmethod
    def apply(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """A function of NumPy on operands."""

    @abstractmethod
    def assign(self, value: Any) -> None:
        """Changes the array in place."""

    @abstractmethod
    def is_number(self) -> bool:
        """True for a number, which no operator changes in place."""

    __hash__ = object.__hash__

    @property
    def T(self) -> Any:  # noqa: N802 (NumPy's name)
        return self.apply(np.transpose, self)

    @property
    def mT(self) -> Any:  # noqa: N802
        return self.apply(np.swapaxes, self, -1, -2)

    @property
    def real(self) -> Any:
        return self.apply(np.real, self)

    @property
    def imag(self) -> Any:
        return self.apply(np.imag, self)

    @property
    def flat(self) -> Any:
        return self.apply(np.ravel, self)

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        whole = len(shape) == 1 and isinstance(shape[0], tuple | list)
        return self.apply(np.reshape, self, shape[0] if whole else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        if len(axes) == 1 and not is_whole(axes[0]):
            axes = axes[0]
        return self.apply(np.transpose, self, axes or None)

    def flatten(self, order: str = "C") -> Any:
        return self.apply(np.ravel, self, order=order).copy()

    def fill(self, value: Any) -> None:
        self.assign(value)

    def sort(self, axis: int = -1, **_: Any) -> None:
        self.assign(self.apply(np.sort, self, axis))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    def __neg__(self) -> Any:
        return self.apply(np.negative, self)

    def __pos__(self) -> Any:
        return self.apply(np.positive, self)

    def __abs__(self) -> Any:
        return self.apply(np.absolute, self)

    def __invert__(self) -> Any:
        return self.apply(np.logical_not, self)

    def __add__(self, other: Any) -> Any:
        return self.apply(np.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return self.apply(np.add, other, self)

    def __iadd__(self, other: Any) -> Any:
        return self._changed(self + other)

    def __sub__(self, other: Any) -> Any:
        return self.apply(np.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.apply(np.subtract, other, self)

    def __isub__(self, other: Any) -> Any:
        return self._changed(self - other)

    def __mul__(self, other: Any) -> Any:
        return self.apply(np.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.apply(np.multiply, other, self)

    def __imul__(self, other: Any) -> Any:
        return self._changed(self * other)

    def __truediv__(self, other: Any) -> Any:
        return self.apply(np.divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.apply(np.divide, other, self)

    def __itruediv__(self, other: Any) -> Any:
        return self._changed(self / other)

    def __floordiv__(self, other: Any) -> Any:
        return self.apply(np.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.apply(np.floor_divide, other, self)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._changed(self // other)

    def __mod__(self, other: Any) -> Any:
        return self.apply(np.remainder, self, other)

    def __rmod__(self, other: Any) -> Any:
        return self.apply(np.remainder, other, self)

    def __imod__(self, other: Any) -> Any:
        return self._changed(self % other)

    def __pow__(self, other: Any) -> Any:
        return self.apply(np.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return self.apply(np.power, other, self)

    def __ipow__(self, other: Any) -> Any:
        return self._changed(self**other)

    def __matmul__(self, other: Any) -> Any:
        return self.apply(np.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.apply(np.matmul, other, self)

    def __imatmul__(self, other: Any) -> Any:
        return self._changed(self @ other)

    def __and__(self, other: Any) -> Any:
        return self.apply(np.logical_and, self, other)

    def __rand__(self, other: Any) -> Any:
        return self.apply(np.logical_and, other, self)

    def __iand__(self, other: Any) -> Any:
        return self._changed(self & other)

    def __or__(self, other: Any) -> Any:
        return self.apply(np.logical_or, self, other)

    def __ror__(self, other: Any) -> Any:
        return self.apply(np.logical_or, other, self)

    def __ior__(self, other: Any) -> Any:
        return self._changed(self | other)

    def __xor__(self, other: Any) -> Any:
        return self.apply(np.not_equal, self, other)

    def __rxor__(self, other: Any) -> Any:
        return self.apply(np.not_equal, other, self)

    def __eq__(self, other: object) -> Any:
        return self.apply(np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return self.apply(np.not_equal, self, other)

    def __lt__(self, other: Any) -> Any:
        return self.apply(np.less, self, other)

    def __le__(self, other: Any) -> Any:
        return self.apply(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return self.apply(np.greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return self.apply(np.greater_equal, self, other)

    def _changed(self, result: Any) -> Any:
        """The array changed in place; a number is none, and a name gets the new one."""
        if self.is_number():
            return result
        self.assign(result)
        return self
