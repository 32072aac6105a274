"""Operators and methods of arrays on tracers, in terms of NumPy's functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad.program.arithmetic import FUNCTIONS, ComparableOperand, alone, between
from handgrad.program.integers import is_whole

#: NumPy's functions of the operators.
_FUNCTIONS: Final[dict[str, Any]] = {
    **{name: getattr(np, name.removeprefix("bitwise_"), None) for name in FUNCTIONS},
    **{f"bitwise_{name}": getattr(np, f"bitwise_{name}") for name in ("and", "or", "xor")},
    "pow": np.power,
}
#: Those of truths, where an operator on bits has one of its own.
_OF_TRUTHS: Final[dict[str, Any]] = {
    "bitwise_and": np.logical_and,
    "bitwise_or": np.logical_or,
    "bitwise_xor": np.not_equal,
    "bitwise_invert": np.logical_not,
}


def _kind(x: Any) -> str:
    """The kind of an operand's type, as NumPy has it in `dtype.kind`."""
    kind: str = (x if hasattr(x, "dtype") else np.asarray(x)).dtype.kind
    return kind


def _changing(name: str) -> Callable[[Any, Any], Any]:
    """The method of an operator that changes its left operand, such as `+=`."""
    return lambda self, other: self._changed(FUNCTIONS[name](self, other))


class Operators(ComparableOperand, ABC):
    """Operators and methods of arrays; `apply` does a function of NumPy."""

    @abstractmethod
    def apply(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """A function of NumPy on operands."""

    @abstractmethod
    def assign(self, value: Any) -> None:
        """Changes the array in place."""

    @abstractmethod
    def is_fixed(self) -> bool:
        """True for what no operator changes in place: a number, and arrays of JAX."""

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

    def compress(self, condition: Any, axis: Any = None) -> Any:
        return self.apply(np.compress, condition, self, axis)

    def fill(self, value: Any) -> None:
        self.assign(value)

    def sort(self, axis: int = -1, **_: Any) -> None:
        self.assign(self.apply(np.sort, self, axis))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    def operate(self, name: str, *operands: Any) -> Any:
        if name in _OF_TRUTHS and all(_kind(each) == "b" for each in operands):
            return self.apply(_OF_TRUTHS[name], *operands)
        return self.apply(_FUNCTIONS[name], *operands)

    __pos__, __invert__ = alone("positive"), alone("bitwise_invert")
    __matmul__, __rmatmul__ = between("matmul")
    __and__, __rand__ = between("bitwise_and")
    __or__, __ror__ = between("bitwise_or")
    __xor__, __rxor__ = between("bitwise_xor")
    __lshift__, __rlshift__ = between("bitwise_left_shift")
    __rshift__, __rrshift__ = between("bitwise_right_shift")
    __iadd__, __isub__, __imul__ = _changing("add"), _changing("subtract"), _changing("multiply")
    __itruediv__, __ifloordiv__ = _changing("divide"), _changing("floor_divide")
    __imod__, __ipow__, __imatmul__ = _changing("remainder"), _changing("pow"), _changing("matmul")
    __iand__, __ior__ = _changing("bitwise_and"), _changing("bitwise_or")
    __ixor__, __ilshift__ = _changing("bitwise_xor"), _changing("bitwise_left_shift")
    __irshift__ = _changing("bitwise_right_shift")

    def __abs__(self) -> Any:
        return self.apply(np.absolute, self)

    def _changed(self, result: Any) -> Any:
        """The array changed in place; a name gets a new one where none is."""
        if self.is_fixed():
            return result
        self.assign(result)
        return self
