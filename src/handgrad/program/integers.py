"""Integers that remember their expression."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.program.counted import CountedRun, after_loops
from handgrad.program.node import world
from handgrad.program.rounds import fixed, guard, settled
from handgrad.program.sizes import Size


class WholeNumber(ABC):
    """An integer with its size. No subclass of int: 0.5 * n would never ask it."""

    __slots__ = ("_born", "_size", "runs", "value")

    def __init__(
        self, value: int, size: Size | int | str, runs: tuple[CountedRun, ...] = ()
    ) -> None:
        self.value, self._size, self.runs = int(value), Size.of(size), runs
        w = world()
        counts = self._size.letters & w.counters.keys()
        self._born = tuple(w.open) if counts else ()

    @abstractmethod
    def scalar(self) -> Any:
        """The integer as a traced array without axes."""

    @property
    def size(self) -> Size:
        """The expression, in the rounds that the trace is in now.

        A counter that outlives its round is that many rounds behind in a later one, and after
        the loop the last of all, or the number of its round, which then holds the count.
        """
        after = after_loops(self.value, self.runs)
        return settled(self._size, self._born) if after is None else after

    @property
    def __class__(self) -> type:
        return int

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("a traced integer stays one")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return self.scalar().__array_ufunc__(ufunc, method, *map(plain, args), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self.scalar().__array_function__(function, types, args, kwargs)

    def __index__(self) -> int:
        return fixed(self.size)

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(fixed(self.size))

    def __repr__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __neg__(self) -> Any:
        return self._made(-self.value, -self.size)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __round__(self, digits: int | None = None) -> Any:
        return self

    __floor__ = __ceil__ = __pos__

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(int(self), int(other), int(modulus))
        if is_whole(other) and number_of(other) >= 0:
            size = Size.of(1)
            for _ in range(int(other)):
                size = size * self.size
            return self._made(self.value ** number_of(other), size)
        return self.scalar() ** other

    def __rpow__(self, other: Any) -> Any:
        return other ** self.scalar()

    def __truediv__(self, other: Any) -> Any:
        return self.scalar() / plain(other)

    def __rtruediv__(self, other: Any) -> Any:
        return plain(other) / self.scalar()

    def __lshift__(self, other: int) -> Any:
        return self * 2 ** int(other)

    def __rshift__(self, other: int) -> Any:
        return self // 2 ** int(other)

    def __and__(self, other: Any) -> Any:
        return int(self) & int(other)

    def __or__(self, other: Any) -> Any:
        return int(self) | int(other)

    def __xor__(self, other: Any) -> Any:
        return int(self) ^ int(other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    @property
    def real(self) -> Any:
        return self

    numerator = real

    def bit_length(self) -> int:
        return int(self).bit_length()

    def item(self) -> Any:
        return self

    def __add__(self, other: Any) -> Any:
        return self._combined(operator.add, other)

    def __radd__(self, other: Any) -> Any:
        return self._combined(operator.add, other, reflected=True)

    def __sub__(self, other: Any) -> Any:
        return self._combined(operator.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self._combined(operator.sub, other, reflected=True)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, list | tuple | str):
            return self._copies(other)
        return self._combined(operator.mul, other)

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, list | tuple | str):
            return self._copies(other)
        return self._combined(operator.mul, other, reflected=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._combined(operator.floordiv, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combined(operator.floordiv, other, reflected=True)

    def __mod__(self, other: Any) -> Any:
        return self._combined(operator.mod, other)

    def __rmod__(self, other: Any) -> Any:
        return self._combined(operator.mod, other, reflected=True)

    def __eq__(self, other: object) -> Any:
        return self._compared(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compared(operator.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(operator.ge, other)

    def _made(self, value: int, size: Size) -> Any:
        return type(self)(value, size)

    def _copies(self, sequence: Any) -> Any:
        """A sequence repeated. One of None will be filled, and what fills it tells the count."""
        empty = isinstance(sequence, list) and all(x is None for x in sequence)
        return sequence * (self.value if empty else int(self))

    def _combined(
        self, sign: Callable[[Any, Any], Any], other: Any, reflected: bool = False
    ) -> Any:
        if not is_whole(other):
            if not isinstance(other, float | np.ndarray | np.generic | bool):
                return NotImplemented
            left, right = (other, self.scalar()) if reflected else (self.scalar(), other)
            return sign(left, right)
        sides = (other, self) if reflected else (self, other)
        value = sign(*map(number_of, sides))
        return self._made(value, sign(*map(size_of, sides)))

    def _compared(self, sign: Callable[[Any, Any], Any], other: Any) -> Any:
        if not is_whole(other):
            if isinstance(other, float) and type(other) is float:
                if other.is_integer():
                    return self._compared(sign, int(other))
                outcome = bool(sign(self.value, other))
                guard("true", sign(self.scalar(), other).node, None, outcome)
                return outcome
            return NotImplemented
        outcome = bool(sign(self.value, number_of(other)))
        left, right = self.size, size_of(other)
        if (left - right).constant is None:
            guard(f"__{sign.__name__}__", left, right, outcome)
        return outcome


def is_whole(x: Any) -> bool:
    """True for a traced integer and for a plain one, a bool left out."""
    kind = type(x)
    return issubclass(kind, WholeNumber | np.integer) or (
        issubclass(kind, int) and kind is not bool
    )


def number_of(x: Any) -> int:
    return x.value if issubclass(type(x), WholeNumber) else int(x)


def size_of(x: Any) -> Size:
    return x.size if issubclass(type(x), WholeNumber) else Size.of(int(x))


def plain(x: Any) -> Any:
    """A traced integer as a traced array, all else as it is."""
    return x.scalar() if issubclass(type(x), WholeNumber) else x
